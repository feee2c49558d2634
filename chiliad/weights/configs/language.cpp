#include "chiliad/weights/configs/language.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <type_traits>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kMostBytes = 16 << 20;

/// A JSON object whose wrong values are named.
class Config {
 public:
  Config(const Json& object, std::string place) : object_(object), place_(std::move(place)) {}

  template <typename T>
  [[nodiscard]] T get(const char* key, const T& usual) const {
    if (!has(key)) return usual;
    if (std::is_same_v<T, int64_t> && !object_.at(key).is_number_integer()) refuse(key, "a whole number");
    try {
      return object_.at(key).get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse(key, "a value of another type");
    }
  }
  template <typename T>
  [[nodiscard]] T need(const char* key) const {
    if (!has(key)) refuse(key, "a value");
    return get<T>(key, T{});
  }
  [[nodiscard]] bool has(const char* key) const {
    return object_.contains(key) && !object_.at(key).is_null();
  }
  [[nodiscard]] Config part(const char* key) const {
    if (!object_.at(key).is_object()) refuse(key, "an object");
    return {object_.at(key), place_};
  }
  [[noreturn]] void refuse(const char* key, const std::string& expected) const {
    throw InvalidInput(place_, fmt::format("{}: expected {}, got {}. This model is not supported as it is",
                                           key, expected, has(key) ? json_text(object_.at(key)) : "nothing"));
  }

 private:
  const Json& object_;
  std::string place_;
};

int64_t needed_count(const Config& config, const char* key) {
  const auto value = config.need<int64_t>(key);
  if (value < 1) config.refuse(key, "a whole number above 0");
  return value;
}

void read_heads(const Config& config, spec::ModelOptions& options) {
  options.heads = needed_count(config, "num_attention_heads");
  if (config.has("num_key_value_heads")) options.kv_heads = needed_count(config, "num_key_value_heads");
  if (config.has("head_dim")) options.head_size = needed_count(config, "head_dim");
  if (options.kv_heads != 0 && options.heads % options.kv_heads != 0)
    config.refuse("num_key_value_heads", fmt::format("a divisor of num_attention_heads ({})", options.heads));
  if (options.head_size == 0 && options.width % options.heads != 0)
    config.refuse("num_attention_heads",
                  fmt::format("a divisor of hidden_size ({}), as there is no head_dim", options.width));
}

void read_rope(const Config& config, spec::ModelOptions& options) {
  const bool is_new = config.has("rope_parameters");
  const bool scaled = is_new || config.has("rope_scaling");
  if (!is_new) options.rope_theta = config.get("rope_theta", options.rope_theta);
  if (!scaled) return;
  const char* section = is_new ? "rope_parameters" : "rope_scaling";
  const Config rope = config.part(section);
  if (is_new) options.rope_theta = rope.get("rope_theta", config.get("rope_theta", options.rope_theta));
  if (rope.get("partial_rotary_factor", 1.0) != 1.0) rope.refuse("partial_rotary_factor", "1");
  const auto kind = rope.get<std::string>("rope_type", rope.get<std::string>("type", "default"));
  if (kind == "default") return;
  if (kind != "linear" && kind != "dynamic" && kind != "llama3" && kind != "yarn")
    rope.refuse(rope.has("rope_type") ? "rope_type" : "type", "default, linear, dynamic, llama3 or yarn");
  options.rope_scaling = kind;
  options.rope_factor = rope.need<double>("factor");
  if (kind != "linear") {
    options.rope_original_context =
        rope.get("original_max_position_embeddings", config.get("max_position_embeddings", int64_t{0}));
  }
  if (kind == "llama3") {
    options.rope_low_frequency = rope.need<double>("low_freq_factor");
    options.rope_high_frequency = rope.need<double>("high_freq_factor");
  }
  if (kind == "yarn") {
    for (const char* key : {"mscale", "mscale_all_dim"}) {
      if (rope.has(key)) rope.refuse(key, "nothing");
    }
    if (!rope.get("truncate", true)) rope.refuse("truncate", "true");
    options.rope_beta_fast = rope.get("beta_fast", options.rope_beta_fast);
    options.rope_beta_slow = rope.get("beta_slow", options.rope_beta_slow);
    options.rope_attention_factor = rope.get("attention_factor", options.rope_attention_factor);
  }
}

void check_supported(const Config& config, const std::string& family) {
  if (config.get<std::string>("hidden_act", "silu") != "silu") config.refuse("hidden_act", "silu");
  if (config.get("use_sliding_window", false)) config.refuse("use_sliding_window", "false");
  if (config.get("partial_rotary_factor", 1.0) != 1.0) config.refuse("partial_rotary_factor", "1");
  for (const char* key : {"residual_multiplier", "embedding_multiplier", "attention_multiplier",
                          "logits_scaling", "logit_scale"}) {
    if (config.get(key, 1.0) != 1.0) config.refuse(key, "1");
  }
  if (config.has("quantization_config"))
    config.refuse("quantization_config", "nothing: the original weights");
  if (family == "qwen2" && config.has("layer_types")) {
    for (const auto& type : config.get<std::vector<std::string>>("layer_types", {})) {
      if (type != "full_attention") config.refuse("layer_types", "full_attention everywhere");
    }
  }
}

Json rope_json(const spec::ModelOptions& options) {
  Json rope{{"rope_type", options.rope_scaling == "none" ? "default" : options.rope_scaling}};
  if (options.rope_scaling == "none") return rope;
  rope["factor"] = options.rope_factor;
  if (options.rope_scaling != "linear")
    rope["original_max_position_embeddings"] = options.rope_original_context;
  if (options.rope_scaling == "llama3") {
    rope["low_freq_factor"] = options.rope_low_frequency;
    rope["high_freq_factor"] = options.rope_high_frequency;
  }
  if (options.rope_scaling == "yarn") {
    rope["beta_fast"] = options.rope_beta_fast;
    rope["beta_slow"] = options.rope_beta_slow;
    if (options.rope_attention_factor > 0.0) rope["attention_factor"] = options.rope_attention_factor;
  }
  return rope;
}

/// Positions that the rotary options are made for; readers want the number.
int64_t most_positions(const spec::ModelOptions& options) {
  if (options.rope_scaling == "dynamic") return options.rope_original_context;
  if (options.rope_original_context == 0) return 131072;
  return static_cast<int64_t>(static_cast<double>(options.rope_original_context) * options.rope_factor);
}

}  // namespace

spec::ModelOptions read_language_config(const std::filesystem::path& path) {
  const std::string text = io::read_text(path, kMostBytes);
  Json json;
  try {
    json = parse_json<Json>(text);
  } catch (const nlohmann::json::exception& error) {
    throw CorruptData(path.string(), fmt::format("is no JSON: {}", error.what()));
  }
  if (!json.is_object()) throw CorruptData(path.string(), "is no JSON object");
  detail::refuse_double_keys(text, path.string());
  const Config config(json, path.string());
  spec::ModelOptions options;
  options.family = config.need<std::string>("model_type");
  if (!spec::is_language_model(options)) config.refuse("model_type", "llama or qwen2");
  check_supported(config, options.family);
  options.width = needed_count(config, "hidden_size");
  options.depth = needed_count(config, "num_hidden_layers");
  options.mlp_width = needed_count(config, "intermediate_size");
  options.vocabulary = needed_count(config, "vocab_size");
  read_heads(config, options);
  options.norm_eps = config.get("rms_norm_eps", 1e-6);
  options.tied = config.get("tie_word_embeddings", false);
  if (options.family == "llama") {
    options.attention_bias = config.get("attention_bias", false);
    options.mlp_bias = config.get("mlp_bias", false);
  }
  read_rope(config, options);
  return options;
}

std::string language_config_json(const spec::ModelOptions& options) {
  const bool llama = options.family == "llama";
  Json json{{"architectures", {llama ? "LlamaForCausalLM" : "Qwen2ForCausalLM"}},
            {"model_type", options.family},
            {"hidden_size", options.width},
            {"intermediate_size", options.mlp_width},
            {"num_hidden_layers", options.depth},
            {"num_attention_heads", options.heads},
            {"num_key_value_heads", options.kv_heads == 0 ? options.heads : options.kv_heads},
            {"head_dim", options.head_size == 0 ? options.width / options.heads : options.head_size},
            {"hidden_act", "silu"},
            {"max_position_embeddings", most_positions(options)},
            {"rms_norm_eps", options.norm_eps},
            {"tie_word_embeddings", options.tied},
            {"vocab_size", options.vocabulary},
            {"initializer_range", 0.02},
            {"use_cache", true},
            {"rope_theta", options.rope_theta}};
  if (llama) {
    json["attention_bias"] = options.attention_bias;
    json["mlp_bias"] = options.mlp_bias;
  } else {
    json["use_sliding_window"] = false;
  }
  Json rope = rope_json(options);
  json["rope_scaling"] = options.rope_scaling == "none" ? Json() : rope;
  rope["rope_theta"] = options.rope_theta;
  json["rope_parameters"] = rope;
  return json_text(json, 2) + "\n";
}

}  // namespace chiliad::weights
