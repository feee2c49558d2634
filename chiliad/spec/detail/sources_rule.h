#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chiliad/spec/detail/cross_checks.h"
#include "chiliad/spec/detail/yaml_tree.h"
#include "chiliad/spec/options/data.h"

namespace chiliad::spec::detail {

/// The tree of sources in a list. Throws InvalidInput with the place of what does not fit; `option` is named
/// in it.
[[nodiscard]] std::vector<DataSource> read_sources(const YamlNode& node, const std::string& option);

/// The tree as YAML on one line, which read_sources reads back to an equal one.
[[nodiscard]] std::string yaml_of(const std::vector<DataSource>& sources);

/// JSON Schema of the list, as text.
[[nodiscard]] std::string sources_schema();

/// What does not fit together in the options of sources.
[[nodiscard]] std::optional<Conflict> check_sources(const DataOptions& data);

}  // namespace chiliad::spec::detail
