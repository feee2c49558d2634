#pragma once

#include <string>
#include <vector>

#include "chiliad/spec/detail/yaml_tree.h"
#include "chiliad/spec/options/data.h"

namespace chiliad::spec::detail {

/// The stages in a list. Throws InvalidInput with the place of what does not fit; `option` is named in it.
[[nodiscard]] std::vector<ShapeStage> read_stages(const YamlNode& node, const std::string& option);

/// The stages as YAML on one line, which read_stages reads back to equal ones.
[[nodiscard]] std::string yaml_of(const std::vector<ShapeStage>& stages);

}  // namespace chiliad::spec::detail
