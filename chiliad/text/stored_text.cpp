#include "chiliad/text/stored_text.h"

#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/text/detail/utf8.h"

namespace chiliad::text {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return text.substr(text.size());
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

LineDocument text_of_json_string(std::string_view literal) {
  std::string repaired;
  if (detail::replace_broken(literal, repaired)) literal = repaired;
  if (!literal.starts_with('"')) return {"", "expected a JSON string"};
  const auto json = try_parse_json<nlohmann::json>(literal);
  if (!json.is_string()) return {"", "expected a JSON string, got escapes that mean nothing"};
  return {std::string(trim(json.get_ref<const std::string&>())), ""};
}

LineDocument text_of_csv_field(std::string_view field) {
  std::string repaired;
  if (detail::replace_broken(field, repaired)) field = repaired;
  if (!field.starts_with('"')) return {std::string(trim(field)), ""};
  if (field.size() < 2 || !field.ends_with('"')) return {"", "expected a quote at the end of the field"};
  field = field.substr(1, field.size() - 2);
  std::string text;
  text.reserve(field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    text.push_back(field[i]);
    if (field[i] != '"') continue;
    if (++i == field.size() || field[i] != '"') return {"", "expected two quotes inside a quoted field"};
  }
  return {std::string(trim(text)), ""};
}

}  // namespace chiliad::text
