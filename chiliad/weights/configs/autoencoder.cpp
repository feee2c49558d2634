#include "chiliad/weights/configs/autoencoder.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/weights/detail/config_reader.h"

namespace chiliad::weights {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kChannelStatistics = "Statistics for each channel are not built: use scaling_factor";

void only_blocks(detail::ConfigReader& config, const char* key, const char* only, size_t stages) {
  const Json* value = config.find(key);
  if (value == nullptr) {
    if (stages != 1) config.refuse(key, fmt::format("{} block types", stages), "none", "Add the list");
    return;
  }
  if (!value->is_array() || value->size() != stages) {
    config.refuse(key, fmt::format("{} block types, as block_out_channels has", stages), json_text(*value),
                  "Make both lists equally long");
  }
  for (const auto& type : *value) {
    if (!type.is_string() || type.get<std::string>() != only)
      config.refuse(key, fmt::format("\"{}\"", only), json_text(type), "Other blocks are not built");
  }
}

/// A file is not trusted: layers are made of what it says.
void check_bounds(detail::ConfigReader& config, const spec::AutoencoderOptions& options) {
  const auto at_most = [&](const char* key, int64_t value, int64_t most) {
    if (value > most)
      config.refuse(key, fmt::format("at most {}", most), std::to_string(value), "Correct the file");
  };
  at_most("in_channels", options.in_channels, 4096);
  at_most("out_channels", options.out_channels, 4096);
  at_most("latent_channels", options.latent_channels, 4096);
  at_most("layers_per_block", options.layers_per_stage, 64);
  at_most("block_out_channels", std::ssize(options.stage_channels), 16);
  for (const int64_t channels : options.stage_channels) at_most("block_out_channels", channels, 65536);
  const double scale = std::abs(options.scaling_factor);
  if (!(scale >= 1e-6 && scale <= 1e6) || !(std::abs(options.shift_factor) <= 1e6))
    config.refuse("scaling_factor", "a size from 1e-6 to 1e6, and a shift_factor of at most 1e6",
                  fmt::format("{} and {}", options.scaling_factor, options.shift_factor), "Correct the file");
}

}  // namespace

spec::AutoencoderOptions parse_autoencoder_config(std::string_view text, const std::string& place) {
  const Json json = detail::parse_config(text, place);
  detail::ConfigReader config(json, place);
  config.only("_class_name", "AutoencoderKL");
  config.only("act_fn", "silu");
  config.only_null("latents_mean", kChannelStatistics);
  config.only_null("latents_std", kChannelStatistics);
  spec::AutoencoderOptions options;
  options.in_channels = config.count("in_channels").value_or(3);
  options.out_channels = config.count("out_channels").value_or(3);
  options.stage_channels = config.integers("block_out_channels", 1, {64});
  const size_t stages = options.stage_channels.size();
  only_blocks(config, "down_block_types", "DownEncoderBlock2D", stages);
  only_blocks(config, "up_block_types", "UpDecoderBlock2D", stages);
  options.layers_per_stage = config.count("layers_per_block").value_or(1);
  options.latent_channels = config.count("latent_channels").value_or(4);
  options.norm_groups = config.count("norm_num_groups").value_or(32);
  options.quant_conv = config.flag("use_quant_conv").value_or(true);
  options.post_quant_conv = config.flag("use_post_quant_conv").value_or(true);
  options.middle_attention = config.flag("mid_block_add_attention").value_or(true);
  options.scaling_factor = config.number("scaling_factor").value_or(0.18215);
  options.shift_factor = config.number("shift_factor").value_or(0.0);
  options.force_upcast = config.flag("force_upcast").value_or(true);
  config.ignore("sample_size");
  config.finish("AutoencoderKL");
  check_bounds(config, options);
  return options;
}

spec::AutoencoderOptions read_autoencoder_config(const std::filesystem::path& path) {
  return parse_autoencoder_config(detail::read_config_text(path, "an AutoencoderKL"), path.string());
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
  return json_text(json, 2) + "\n";
}

}  // namespace chiliad::weights
