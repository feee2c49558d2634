#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chiliad/spec/detail/option.h"
#include "chiliad/spec/detail/yaml_tree.h"

namespace chiliad::spec::detail {

/// Reads `node` into the option's field. Returns what is wrong ("expected X, got Y. How to fix") where it
/// does not fit.
[[nodiscard]] std::optional<std::string> assign(const Option& option, const YamlNode& node, RunFile& file);

/// What the rule asks for: "a number in (0, 1]".
[[nodiscard]] std::string describe(const Rule& rule);

/// Text as a YAML scalar.
[[nodiscard]] std::string yaml_word(const std::string& text);

/// Texts as a YAML list on one line.
[[nodiscard]] std::string yaml_list(const std::vector<std::string>& texts);

/// The value as YAML text that reads back to an equal value. An empty text gives "\"\"".
[[nodiscard]] std::string format_value(const Option& option, const RunFile& file);

}  // namespace chiliad::spec::detail
