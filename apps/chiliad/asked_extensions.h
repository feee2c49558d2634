#pragma once

#include "chiliad/spec/extension.h"

namespace chiliad::cli {

/// What the libraries of a run file bring, told by a worker, which loads them: they need torch, and this
/// program has none. The worker checks the run file, too. Throws what the worker found wrong.
[[nodiscard]] spec::Extensions ask_worker(const spec::ExtensionRequest& request);

}  // namespace chiliad::cli
