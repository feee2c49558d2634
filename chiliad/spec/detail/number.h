#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chiliad/spec/detail/option.h"

namespace chiliad::spec::detail {

/// The number in `text` if it fits the rule, else nothing. Decimal only: no leading zeros, signs "+", "_",
/// hexadecimal, infinity or NaN, for YAML readers disagree about these.
[[nodiscard]] std::optional<int64_t> read_number(const WholeRule& rule, std::string_view text);
[[nodiscard]] std::optional<int64_t> read_number(const BytesRule& rule, std::string_view text);
[[nodiscard]] std::optional<double> read_number(const NumberRule& rule, std::string_view text);

/// What a refused `text` was likely meant to be, in a form that fits the rule.
[[nodiscard]] std::optional<std::string> suggest(const WholeRule& rule, std::string_view text);
[[nodiscard]] std::optional<std::string> suggest(const BytesRule& rule, std::string_view text);
[[nodiscard]] std::optional<std::string> suggest(const NumberRule& rule, std::string_view text);

}  // namespace chiliad::spec::detail
