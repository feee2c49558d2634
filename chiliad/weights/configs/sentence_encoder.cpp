#include "chiliad/weights/configs/sentence_encoder.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr const char* kMean = "pooling_mode_mean_tokens";
constexpr const char* kFirst = "pooling_mode_cls_token";

[[noreturn]] void refuse(const fs::path& file, const std::string& key, const char* wanted, const Json& got) {
  throw InvalidInput(file.string(), fmt::format("{}: expected {}, got {}. Such models are not supported", key,
                                                wanted, json_text(got)));
}

Json read_json(const fs::path& file, bool wants_array) {
  const std::string text = io::read_text(file, kMaxConfigBytes);
  Json json = try_parse_json<Json>(text);
  if (wants_array ? !json.is_array() : !json.is_object())
    throw InvalidInput(file.string(), fmt::format("expected a JSON {}, got other text. Copy the file anew",
                                                  wants_array ? "array" : "object"));
  detail::refuse_double_keys(text, file.string());
  return json;
}

SentenceOptions::Pooling read_pooling(const fs::path& file) {
  const Json json = read_json(file, false);
  std::optional<std::string> mode;
  for (const auto& [key, value] : json.items()) {
    if (!key.starts_with("pooling_mode_") || value == Json(false)) continue;
    if ((key != kMean && key != kFirst) || value != Json(true))
      refuse(file, key, "the mean of the tokens or the first one", value);
    if (mode) refuse(file, key, "one way of pooling", value);
    mode = key;
  }
  if (!mode) refuse(file, kMean, "true", json.value(kMean, Json()));
  return *mode == kMean ? SentenceOptions::Pooling::kMean : SentenceOptions::Pooling::kFirst;
}

int64_t read_limit(const fs::path& file) {
  if (!fs::exists(file)) return 0;
  const Json json = read_json(file, false);
  const Json limit = json.value("max_seq_length", Json());
  if (limit.is_null()) return 0;
  if (!limit.is_number_integer() || limit.get<int64_t>() < 1 || limit.get<int64_t>() > 1 << 24)
    refuse(file, "max_seq_length", "a positive number", limit);
  return limit.get<int64_t>();
}

}  // namespace

std::optional<SentenceOptions> read_sentence_modules(const fs::path& folder) {
  const fs::path file = folder / "modules.json";
  if (!fs::exists(file)) return std::nullopt;
  SentenceOptions options;
  size_t stage = 0;  // the encoder, then pooling, then perhaps the length
  for (const Json& module : read_json(file, true)) {
    if (!module.is_object()) refuse(file, "module", "an object", module);
    const Json type = module.value("type", Json());
    const Json path = module.value("path", Json(""));
    if (!type.is_string() || !path.is_string()) refuse(file, "module", "a type and a path", module);
    const auto full = type.get<std::string>();
    const std::string name = full.substr(full.rfind('.') + 1);
    const char* const kStages[] = {"Transformer", "Pooling", "Normalize"};
    if (stage >= std::size(kStages) || name != kStages[stage])
      refuse(file, "type", "a Transformer, Pooling, and nothing or Normalize", type);
    if (stage == 0 && path != Json("")) refuse(file, "path", "the encoder in the folder itself", path);
    if (stage == 1) options.pooling = read_pooling(folder / path.get<std::string>() / "config.json");
    options.normalise = stage == 2;
    ++stage;
  }
  if (stage < 2) refuse(file, "modules", "a Transformer and Pooling", read_json(file, true));
  options.max_tokens = read_limit(folder / "sentence_bert_config.json");
  return options;
}

}  // namespace chiliad::weights
