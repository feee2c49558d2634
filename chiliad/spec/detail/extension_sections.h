#pragma once

#include <string_view>
#include <vector>

#include "chiliad/spec/detail/option.h"
#include "chiliad/spec/detail/yaml_tree.h"
#include "chiliad/spec/extension.h"

namespace chiliad::spec::detail {

/// The key of a run file that lists libraries.
inline constexpr std::string_view kExtensions = "extensions";

/// Learns what the libraries of `root` bring, and sets in `file` those that it uses, with the defaults of
/// their options. request: all but the libraries. returns: the sections with their names and options. Throws
/// InvalidInput where the list or a library cannot be used.
[[nodiscard]] std::vector<Section> use_extensions(const YamlNode& root, ExtensionRequest request,
                                                  RunFile& file);

/// The sections with the options of the extensions that `file` uses.
[[nodiscard]] std::vector<Section> sections_of(const RunFile& file);

/// Whether both use the same family and objective.
[[nodiscard]] bool same_extensions(const RunFile& a, const RunFile& b);

}  // namespace chiliad::spec::detail
