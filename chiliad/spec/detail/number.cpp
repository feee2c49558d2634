#include "chiliad/spec/detail/number.h"

#include <fmt/core.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "chiliad/base/units.h"

namespace chiliad::spec::detail {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool has_leading_zero(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return text.size() > 1 && text[0] == '0' && is_digit(text[1]);
}

template <typename T>
std::optional<T> read_plain(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size() || has_leading_zero(text))
    return std::nullopt;
  return value;
}

// The text as its author may have meant it: without separators, a plus, leading zeros, or letters at the end.
std::string tidy(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c != '_') kept += c;
  }
  while (kept.size() > 1 && (kept[0] == '+' || has_leading_zero(kept))) kept.erase(kept[0] == '-' ? 1 : 0, 1);
  while (!kept.empty() && (std::isalpha(static_cast<unsigned char>(kept.back())) || kept.back() == ' ')) {
    kept.pop_back();
  }
  return kept;
}

}  // namespace

std::optional<int64_t> read_number(const WholeRule& rule, std::string_view text) {
  const auto value = read_plain<int64_t>(text);
  if (!value || *value < rule.min || *value > rule.max) return std::nullopt;
  return value;
}

std::optional<int64_t> read_number(const BytesRule& rule, std::string_view text) {
  auto value = read_plain<int64_t>(text);
  const bool has_unit = !text.empty() && std::isalpha(static_cast<unsigned char>(text.back()));
  if (!value && has_unit && is_digit(text.front()) && !has_leading_zero(text)) value = parse_bytes(text);
  if (!value || *value < rule.min || *value > rule.max) return std::nullopt;
  return value;
}

std::optional<double> read_number(const NumberRule& rule, std::string_view text) {
  const auto value = read_plain<double>(text);
  if (!value || !std::isfinite(*value)) return std::nullopt;
  const bool above = rule.without_min ? *value > rule.min : *value >= rule.min;
  const bool below = rule.without_max ? *value < rule.max : *value <= rule.max;
  return above && below ? value : std::nullopt;
}

std::optional<std::string> suggest(const WholeRule& rule, std::string_view text) {
  const std::string kept = tidy(text);
  if (read_number(rule, kept)) return kept;
  const auto value = read_plain<double>(kept);
  if (!value || !(std::abs(*value) < 9e15) || *value != std::floor(*value)) return std::nullopt;
  const std::string whole = fmt::format("{:.0f}", *value);
  return read_number(rule, whole) ? std::optional(whole) : std::nullopt;
}

std::optional<std::string> suggest(const BytesRule& rule, std::string_view text) {
  constexpr std::array<std::string_view, 2> kEnds{"iB", "B"};
  for (const std::string_view end : kEnds) {
    const std::string longer = std::string(text) + std::string(end);
    if (read_number(rule, longer)) return longer;
  }
  return std::nullopt;
}

std::optional<std::string> suggest(const NumberRule& rule, std::string_view text) {
  const std::string kept = tidy(text);
  return read_number(rule, kept) ? std::optional(kept) : std::nullopt;
}

}  // namespace chiliad::spec::detail
