#include "chiliad/weights/configs/text_encoder.h"

#include <fmt/format.h>

#include <algorithm>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxConfigBytes = 1 << 20;
constexpr int64_t kMaxNumber = int64_t{1} << 32;

class Config {
 public:
  Config(Json json, std::string place) : json_(std::move(json)), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& wanted) const {
    const auto found = json_.find(key);
    throw InvalidInput(place_, fmt::format("{}: expected {}, got {}. Such models are not supported", key,
                                           wanted, found == json_.end() ? "nothing" : json_text(*found)));
  }
  [[nodiscard]] bool has(const std::string& key) const {
    return json_.contains(key) && !json_[key].is_null();
  }
  [[nodiscard]] int64_t number(const std::string& key) const {
    if (!has(key) || !json_[key].is_number_integer()) refuse(key, "a whole number");
    const auto value = json_[key].get<int64_t>();
    if (value < 0 || value > kMaxNumber) refuse(key, fmt::format("a number from 0 to {}", kMaxNumber));
    return value;
  }
  [[nodiscard]] int64_t number_or(const std::string& key, int64_t fallback) const {
    return has(key) ? number(key) : fallback;
  }
  [[nodiscard]] double real_or(const std::string& key, double fallback) const {
    if (!has(key)) return fallback;
    if (!json_[key].is_number()) refuse(key, "a number");
    return json_[key].get<double>();
  }
  [[nodiscard]] std::string text_or(const std::string& key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!json_[key].is_string()) refuse(key, "a text");
    return json_[key].get<std::string>();
  }
  void expect_text(const std::string& key, const std::string& wanted) const {
    if (text_or(key, wanted) != wanted) refuse(key, wanted);
  }
  void expect_false(const std::string& key) const {
    if (has(key) && json_[key] != Json(false)) refuse(key, "false");
  }
  [[nodiscard]] bool has_architecture(const std::string& name) const {
    const auto found = json_.find("architectures");
    return found != json_.end() && found->is_array() &&
           std::find(found->begin(), found->end(), name) != found->end();
  }
  [[nodiscard]] std::string activation(const std::string& key, const std::string& name) const {
    if (name == "gelu" || name == "quick_gelu" || name == "relu") return name;
    if (name == "gelu_new" || name == "gelu_pytorch_tanh") return "gelu_tanh";
    refuse(key, "gelu, gelu_new, gelu_pytorch_tanh, quick_gelu or relu");
  }
  /// The text half of a model with two towers, which may say more about itself than the whole.
  [[nodiscard]] Config inner(const std::string& key) const {
    Json merged = json_[key].is_object() ? json_[key] : Json::object();
    if (!merged.contains("projection_dim") && json_.contains("projection_dim"))
      merged["projection_dim"] = json_["projection_dim"];
    return {merged, place_ + ": " + key};
  }

 private:
  Json json_;
  std::string place_;
};

void set_head_size(const Config& config, const char* key, spec::TextEncoderOptions& options) {
  if (options.heads == 0 || options.width % options.heads != 0)
    config.refuse(key, "a divisor of hidden_size");
  options.head_size = options.width / options.heads;
}

spec::TextEncoderOptions bert(const Config& config) {
  config.expect_text("position_embedding_type", "absolute");
  config.expect_false("is_decoder");
  config.expect_false("add_cross_attention");
  spec::TextEncoderOptions options;
  options.family = "bert";
  options.width = config.number("hidden_size");
  options.depth = config.number("num_hidden_layers");
  options.heads = config.number("num_attention_heads");
  set_head_size(config, "num_attention_heads", options);
  options.mlp_width = config.number("intermediate_size");
  options.vocabulary = config.number("vocab_size");
  options.positions = config.number("max_position_embeddings");
  options.activation = config.activation("hidden_act", config.text_or("hidden_act", "gelu"));
  options.norm_eps = config.real_or("layer_norm_eps", 1e-12);
  options.pad_token = config.number_or("pad_token_id", 0);
  options.token_types = config.number_or("type_vocab_size", 2);
  return options;
}

spec::TextEncoderOptions clip_text(const Config& config, bool projected) {
  constexpr int64_t kWrongEnd = 2;  // what configs said before the end token was written right
  spec::TextEncoderOptions options;
  options.family = "clip_text";
  options.width = config.number_or("hidden_size", 512);
  options.depth = config.number_or("num_hidden_layers", 12);
  options.heads = config.number_or("num_attention_heads", 8);
  set_head_size(config, "num_attention_heads", options);
  options.mlp_width = config.number_or("intermediate_size", 2048);
  options.vocabulary = config.number_or("vocab_size", 49408);
  options.positions = config.number_or("max_position_embeddings", 77);
  options.activation = config.activation("hidden_act", config.text_or("hidden_act", "quick_gelu"));
  options.norm_eps = config.real_or("layer_norm_eps", 1e-5);
  options.pad_token = config.number_or("pad_token_id", 1);
  options.end_token = config.number_or("eos_token_id", 49407);
  options.pool_at_largest = options.end_token == kWrongEnd;
  if (projected) options.projection = config.number_or("projection_dim", 512);
  return options;
}

spec::TextEncoderOptions t5(const Config& config) {
  spec::TextEncoderOptions options;
  options.family = "t5";
  options.width = config.number("d_model");
  options.depth = config.number("num_layers");
  options.heads = config.number("num_heads");
  options.head_size = config.number("d_kv");
  options.mlp_width = config.number("d_ff");
  options.vocabulary = config.number("vocab_size");
  const std::string kind = config.text_or("feed_forward_proj", "relu");
  options.gated = kind.starts_with("gated-");
  const std::string activation = options.gated ? kind.substr(6) : kind;
  // "gated-gelu" has always meant the tanh form; only a new spelling says so.
  options.activation =
      kind == "gated-gelu" ? "gelu_tanh" : config.activation("feed_forward_proj", activation);
  options.norm_eps = config.real_or("layer_norm_epsilon", 1e-6);
  options.pad_token = config.number_or("pad_token_id", 0);
  options.end_token = config.number_or("eos_token_id", 1);
  options.buckets = config.number_or("relative_attention_num_buckets", 32);
  options.max_distance = config.number_or("relative_attention_max_distance", 128);
  return options;
}

Json read_json(const std::filesystem::path& path) {
  const std::string text = io::read_text(path, kMaxConfigBytes);
  Json json = try_parse_json<Json>(text);
  if (!json.is_object()) {
    throw InvalidInput(path.string(),
                       "expected the JSON object of a model, got other text. Copy the file anew");
  }
  detail::refuse_double_keys(text, path.string());
  return json;
}

}  // namespace

spec::TextEncoderOptions read_text_encoder_config(const std::filesystem::path& path) {
  const Config config(read_json(path), path.string());
  const std::string type = config.text_or("model_type", "");
  if (type == "bert") return bert(config);
  if (type == "clip_text_model")
    return clip_text(config, config.has_architecture("CLIPTextModelWithProjection"));
  if (type == "clip" && config.has("text_config")) return clip_text(config.inner("text_config"), true);
  if (type == "t5") return t5(config);
  config.refuse("model_type", "bert, clip, clip_text_model or t5");
}

}  // namespace chiliad::weights
