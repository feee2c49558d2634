#pragma once

#include <string>
#include <utility>
#include <vector>

namespace chiliad::cli {

/// Files of a new extension, by name: sources, CMakeLists.txt and a run file. kind: layer, objective or
/// model; name: words of a to z, 0 to 9 and _.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> skeleton_files(const std::string& kind,
                                                                              const std::string& name);

}  // namespace chiliad::cli
