#include "chiliad/weights/detail/config_reader.h"

#include <fmt/core.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/weights/detail/strict_json.h"

namespace chiliad::weights::detail {
namespace {

constexpr size_t kMaxConfigBytes = 1 << 20;
constexpr size_t kMaxDepth = 32;

/// For who wants the rules of the text alone.
class NoValues final : public JsonHandler {
 public:
  void on_open(const JsonPath& /*path*/, bool /*is_object*/) override {}
  void on_close(const JsonPath& /*path*/) override {}
  void on_scalar(const JsonPath& /*path*/, const JsonScalar& /*value*/) override {}
};

}  // namespace

std::string read_config_text(const std::filesystem::path& path, std::string_view owner) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (!file || error || bytes > kMaxConfigBytes) {
    throw InvalidInput(path.string(),
                       fmt::format("config: expected a readable file of at most 1 MiB, got none. "
                                   "Give the config.json of {}",
                                   owner));
  }
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void refuse_double_keys(std::string_view text, const std::string& place) {
  NoValues values;
  read_strict_json(text, place, "config", kMaxDepth, values);
}

OrderedJson parse_config(std::string_view text, const std::string& place) {
  OrderedJson json = try_parse_json<OrderedJson>(text);
  if (!json.is_object())
    throw InvalidInput(place,
                       "config: expected a JSON object, got something else. Use the model's config.json");
  refuse_double_keys(text, place);
  return json;
}

void ConfigReader::refuse(const std::string& key, const std::string& expected, const std::string& got,
                          const std::string& advice) const {
  throw InvalidInput(place_, fmt::format("{}: expected {}, got {}. {}", key, expected, got, advice));
}

const OrderedJson* ConfigReader::find(const char* key) {
  seen_.insert(key);
  const auto found = json_.find(key);
  return found == json_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<int64_t> ConfigReader::count(const char* key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number_integer() || value->get<int64_t>() < 1)
    refuse(key, "an integer of at least 1", json_text(*value), "Correct the file");
  return value->get<int64_t>();
}

int64_t ConfigReader::needed_count(const char* key) {
  const auto value = count(key);
  if (!value) refuse(key, "an integer of at least 1", "none", "This model needs it");
  return *value;
}

std::optional<double> ConfigReader::number(const char* key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number()) refuse(key, "a number", json_text(*value), "Correct the file");
  return value->get<double>();
}

std::optional<double> ConfigReader::positive_number(const char* key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_number() || value->get<double>() <= 0.0)
    refuse(key, "a number above 0", json_text(*value), "Correct the file");
  return value->get<double>();
}

std::optional<bool> ConfigReader::flag(const char* key) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(key, "true or false", json_text(*value), "Correct the file");
  return value->get<bool>();
}

std::string ConfigReader::text(const char* key, const std::string& otherwise) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(key, "a string", json_text(*value), "Correct the file");
  return value->get<std::string>();
}

std::vector<int64_t> ConfigReader::integers(const char* key, int64_t least, std::vector<int64_t> otherwise) {
  const OrderedJson* value = find(key);
  if (value == nullptr) return otherwise;
  std::vector<int64_t> found;
  bool good = value->is_array() && (least == 0 || !value->empty());
  for (size_t i = 0; good && i < value->size(); ++i) {
    good = value->at(i).is_number_integer() && value->at(i).get<int64_t>() >= least;
    if (good) found.push_back(value->at(i).get<int64_t>());
  }
  if (!good)
    refuse(key, fmt::format("a list of integers of at least {}", least), json_text(*value),
           "Correct the file");
  return found;
}

void ConfigReader::only(const char* key, const OrderedJson& only) {
  const OrderedJson* value = find(key);
  if (value != nullptr && *value != only)
    refuse(key, json_text(only), json_text(*value), "Others are not built");
}

void ConfigReader::only_null(const char* key, const char* advice) {
  const OrderedJson* value = find(key);
  if (value != nullptr) refuse(key, "null", json_text(*value), advice);
}

void ConfigReader::finish(std::string_view owner) {
  for (const char* key : {"_class_name", "_diffusers_version", "_name_or_path"}) ignore(key);
  for (const auto& [key, value] : json_.items()) {
    if (!seen_.contains(key))
      refuse(key, fmt::format("a key of {}", owner), json_text(value), "Remove it, or use a newer version");
  }
}

}  // namespace chiliad::weights::detail
