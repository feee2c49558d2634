#include "chiliad/base/json_text.h"

#include <nlohmann/json.hpp>

namespace chiliad {

template <typename Json>
Json parse_json(std::string_view text) {
  return Json::parse(text);
}
template <typename Json>
Json try_parse_json(std::string_view text) {
  return Json::parse(text, nullptr, false);
}
template <typename Json>
std::string json_text(const Json& json, int indent) {
  return json.dump(indent);
}
template <typename Json>
std::string json_text_replacing(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

template nlohmann::json parse_json(std::string_view);
template nlohmann::json try_parse_json(std::string_view);
template std::string json_text(const nlohmann::json&, int);
template std::string json_text_replacing(const nlohmann::json&, int);

template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::ordered_json try_parse_json(std::string_view);
template std::string json_text(const nlohmann::ordered_json&, int);
template std::string json_text_replacing(const nlohmann::ordered_json&, int);

}  // namespace chiliad
