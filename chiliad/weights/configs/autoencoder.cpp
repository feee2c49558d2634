#include "chiliad/weights/configs/autoencoder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <set>
#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::ordered_json;

/// Largest config.json that is read.
constexpr size_t kMaxConfigBytes = 1 << 20;

/// Keys that do not change what the network computes.
const std::set<std::string, std::less<>> kWithoutEffect = {"_class_name", "_diffusers_version",
                                                           "_name_or_path", "sample_size", "force_upcast"};

/// Reads keys and remembers which; what stays is unknown.
class ConfigReader {
 public:
  ConfigReader(const Json& json, std::string place) : json_(json), place_(std::move(place)) {}

  [[noreturn]] void refuse(const std::string& key, const std::string& expected, const std::string& got,
                           const std::string& advice) const {
    throw InvalidInput(place_, fmt::format("{}: expected {}, got {}. {}", key, expected, got, advice));
  }

  int64_t count(const char* key, int64_t otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number_integer() || value->get<int64_t>() < 1)
      refuse(key, "an integer of at least 1", value->dump(), "Correct the file");
    return value->get<int64_t>();
  }

  double number(const char* key, double otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_number()) refuse(key, "a number", value->dump(), "Correct the file");
    return value->get<double>();
  }

  bool flag(const char* key, bool otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    if (!value->is_boolean()) refuse(key, "true or false", value->dump(), "Correct the file");
    return value->get<bool>();
  }

  std::vector<int64_t> counts(const char* key, std::vector<int64_t> otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    std::vector<int64_t> found;
    bool good = value->is_array() && !value->empty();
    for (size_t i = 0; good && i < value->size(); ++i) {
      good = value->at(i).is_number_integer() && value->at(i).get<int64_t>() > 0;
      if (good) found.push_back(value->at(i).get<int64_t>());
    }
    if (!good) refuse(key, "a list of integers of at least 1", value->dump(), "Correct the file");
    return found;
  }

  /// The value, where there is one, must be `only`.
  void only_text(const char* key, const char* only) {
    const Json* value = find(key);
    if (value != nullptr && (!value->is_string() || value->get<std::string>() != only))
      refuse(key, fmt::format("\"{}\"", only), value->dump(), "Others are not built");
  }

  void only_blocks(const char* key, const char* only, size_t stages) {
    const Json* value = find(key);
    if (value == nullptr) {
      if (stages != 1) refuse(key, fmt::format("{} block types", stages), "none", "Add the list");
      return;
    }
    if (!value->is_array() || value->size() != stages)
      refuse(key, fmt::format("{} block types, as block_out_channels has", stages), value->dump(),
             "Make both lists equally long");
    for (const auto& type : *value) {
      if (!type.is_string() || type.get<std::string>() != only)
        refuse(key, fmt::format("\"{}\"", only), type.dump(), "Other blocks are not built");
    }
  }

  void only_null(const char* key) {
    const Json* value = find(key);
    if (value != nullptr)
      refuse(key, "null", value->dump(), "Statistics for each channel are not built: use scaling_factor");
  }

  void finish() const {
    for (const auto& [key, value] : json_.items()) {
      if (!seen_.contains(key) && !kWithoutEffect.contains(key))
        refuse(key, "a key of AutoencoderKL", value.dump(), "Remove it, or use a newer version");
    }
  }

 private:
  /// Null where the key is not there or its value is null.
  const Json* find(const char* key) {
    seen_.insert(key);
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }

  const Json& json_;
  std::string place_;
  std::set<std::string, std::less<>> seen_;
};

}  // namespace

spec::AutoencoderOptions parse_autoencoder_config(std::string_view text, const std::string& place) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object())
    throw InvalidInput(place,
                       "config: expected a JSON object, got something else. Use the model's config.json");
  ConfigReader config(json, place);
  config.only_text("_class_name", "AutoencoderKL");
  config.only_text("act_fn", "silu");
  config.only_null("latents_mean");
  config.only_null("latents_std");
  spec::AutoencoderOptions options;
  options.in_channels = config.count("in_channels", 3);
  options.out_channels = config.count("out_channels", 3);
  options.stage_channels = config.counts("block_out_channels", {64});
  const size_t stages = options.stage_channels.size();
  config.only_blocks("down_block_types", "DownEncoderBlock2D", stages);
  config.only_blocks("up_block_types", "UpDecoderBlock2D", stages);
  options.layers_per_stage = config.count("layers_per_block", 1);
  options.latent_channels = config.count("latent_channels", 4);
  options.norm_groups = config.count("norm_num_groups", 32);
  options.quant_conv = config.flag("use_quant_conv", true);
  options.post_quant_conv = config.flag("use_post_quant_conv", true);
  options.middle_attention = config.flag("mid_block_add_attention", true);
  options.scaling_factor = config.number("scaling_factor", 0.18215);
  options.shift_factor = config.number("shift_factor", 0.0);
  options.force_upcast = config.flag("force_upcast", true);
  config.finish();
  if (options.scaling_factor == 0.0)
    config.refuse("scaling_factor", "a number other than 0", "0", "Latents divide by it");
  return options;
}

spec::AutoencoderOptions read_autoencoder_config(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  if (!file || error || bytes > kMaxConfigBytes)
    throw InvalidInput(path.string(),
                       "config: expected a readable file of at most 1 MiB, got none. "
                       "Give the config.json of an AutoencoderKL");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return parse_autoencoder_config(text, path.string());
}

std::string write_autoencoder_config(const spec::AutoencoderOptions& options) {
  const size_t stages = options.stage_channels.size();
  Json json;
  json["_class_name"] = "AutoencoderKL";
  json["act_fn"] = "silu";
  json["block_out_channels"] = options.stage_channels;
  json["down_block_types"] = std::vector<std::string>(stages, "DownEncoderBlock2D");
  json["force_upcast"] = options.force_upcast;
  json["in_channels"] = options.in_channels;
  json["latent_channels"] = options.latent_channels;
  json["layers_per_block"] = options.layers_per_stage;
  json["mid_block_add_attention"] = options.middle_attention;
  json["norm_num_groups"] = options.norm_groups;
  json["out_channels"] = options.out_channels;
  json["scaling_factor"] = options.scaling_factor;
  json["shift_factor"] = options.shift_factor;
  json["up_block_types"] = std::vector<std::string>(stages, "UpDecoderBlock2D");
  json["use_post_quant_conv"] = options.post_quant_conv;
  json["use_quant_conv"] = options.quant_conv;
  return json.dump(2) + "\n";
}

}  // namespace chiliad::weights
