#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace chiliad {

// Text to JSON and back, for nlohmann::json and nlohmann::ordered_json. Compiled once: the library's parser
// and writer cost every file that calls them four and two seconds.

/// Throws Json::parse_error.
template <typename Json>
[[nodiscard]] Json parse_json(std::string_view text);
/// A discarded value (is_discarded()) where the text is no JSON.
template <typename Json>
[[nodiscard]] Json try_parse_json(std::string_view text);

/// `indent`: -1 in one line, else spaces a level. Throws Json::type_error for text that is not UTF-8.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& json, int indent = -1);
/// Text that is not UTF-8 gets U+FFFD in its place.
template <typename Json>
[[nodiscard]] std::string json_text_replacing(const Json& json, int indent = -1);

}  // namespace chiliad
