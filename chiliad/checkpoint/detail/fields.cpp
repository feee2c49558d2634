#include "chiliad/checkpoint/detail/fields.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"

namespace chiliad::checkpoint::detail {

Json parse_object(const std::string& place, std::string_view text) {
  Json parsed = try_parse_json<Json>(text);
  if (parsed.is_discarded()) throw CorruptData(place, "is not JSON");
  if (!parsed.is_object())
    throw CorruptData(place, fmt::format("expected an object, got {}", parsed.type_name()));
  return parsed;
}

Fields::Fields(const Json& object, const std::string& place) : object_(object), place_(place) {
  if (!object_.is_object()) refuse(fmt::format("expected an object, got {}", object_.type_name()));
}

void Fields::refuse(const std::string& what) const {
  throw CorruptData(place_, what);
}

const Json& Fields::at(const char* key) const {
  const auto found = object_.find(key);
  if (found == object_.end()) refuse(fmt::format("{}: is missing", key));
  return *found;
}

int64_t Fields::integer(const char* key, int64_t low, int64_t high) const {
  const Json& value = at(key);
  if (!value.is_number_integer())
    refuse(fmt::format("{}: expected an integer, got {}", key, value.type_name()));
  const bool too_large =
      value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t number = too_large ? INT64_MAX : value.get<int64_t>();
  if (too_large || number < low || number > high) {
    refuse(fmt::format("{}: expected {} to {}, got {}", key, low, high, json_text(value)));
  }
  return number;
}

const std::string& Fields::text(const char* key) const {
  const Json& value = at(key);
  if (!value.is_string()) refuse(fmt::format("{}: expected a string, got {}", key, value.type_name()));
  return value.get_ref<const std::string&>();
}

const Json& Fields::array(const char* key) const {
  const Json& value = at(key);
  if (!value.is_array()) refuse(fmt::format("{}: expected an array, got {}", key, value.type_name()));
  return value;
}

uint64_t Fields::hex64(const char* key) const {
  return hex64_value(place_ + ": " + key, text(key));
}

DType Fields::dtype(const char* key) const {
  const auto found = dtype_from_name(text(key));
  if (!found.has_value()) refuse(fmt::format("{}: unknown type \"{}\"", key, text(key)));
  return *found;
}

Shape Fields::shape(const char* key) const {
  const Json& values = array(key);
  if (values.size() > static_cast<size_t>(kMaxTensorRank)) {
    refuse(fmt::format("{}: expected at most {} extents, got {}", key, kMaxTensorRank, values.size()));
  }
  std::vector<int64_t> sizes;
  for (const Json& value : values) {
    const bool valid =
        value.is_number_unsigned() && value.get<uint64_t>() <= static_cast<uint64_t>(kMaxNumber);
    if (!valid) refuse(fmt::format("{}: expected non-negative integers, got {}", key, json_text(value)));
    sizes.push_back(value.get<int64_t>());
  }
  return Shape(std::move(sizes));
}

void Fields::null(const char* key) const {
  if (!at(key).is_null())
    refuse(fmt::format("{}: expected null, got {}. A newer version wrote it", key, at(key).type_name()));
}

std::string hex64_text(uint64_t value) {
  return fmt::format("{:016x}", value);
}

uint64_t hex64_value(const std::string& place, const std::string& text) {
  uint64_t value = 0;
  bool valid = text.size() == 16;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = c >= 'a' && c <= 'f';
    valid = valid && (digit || letter);
    value = value << 4 | static_cast<uint64_t>(digit ? c - '0' : c - 'a' + 10);
  }
  if (!valid) throw CorruptData(place, fmt::format("expected 16 hex digits, got \"{}\"", text));
  return value;
}

bool is_section_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

}  // namespace chiliad::checkpoint::detail
