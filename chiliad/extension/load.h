#pragma once

#include <string>

#include "chiliad/spec/extension.h"

namespace chiliad::extension {

/// Loads the libraries of a run file into this process, where they stay, and asks each what it brings. Throws
/// InvalidInput where a file is no library of extensions, or was built with another Chiliad, torch or
/// compiler.
[[nodiscard]] spec::Extensions load_extensions(const spec::ExtensionRequest& request);

/// What a library must have been built with.
[[nodiscard]] std::string build_id();

}  // namespace chiliad::extension
