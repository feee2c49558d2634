#include "chiliad/weights/start_weights.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <tuple>

#include "chiliad/base/error.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/weights/configs/autoencoder.h"
#include "chiliad/weights/configs/diffusion.h"
#include "chiliad/weights/configs/language.h"
#include "chiliad/weights/key_tables/model_keys.h"

namespace chiliad::weights {
namespace {

/// Options of language models by name, with defaults that stand for other values replaced by these.
auto named_options(const spec::ModelOptions& o) {
  const int64_t kv_heads = o.kv_heads == 0 ? o.heads : o.kv_heads;
  const int64_t head_size = o.head_size == 0 ? o.width / o.heads : o.head_size;
  return std::tuple{std::pair{"family", o.family},
                    std::pair{"width", o.width},
                    std::pair{"depth", o.depth},
                    std::pair{"heads", o.heads},
                    std::pair{"kv_heads", kv_heads},
                    std::pair{"head_size", head_size},
                    std::pair{"mlp_width", o.mlp_width},
                    std::pair{"vocabulary", o.vocabulary},
                    std::pair{"norm_eps", o.norm_eps},
                    std::pair{"tied", o.tied},
                    std::pair{"attention_bias", o.attention_bias},
                    std::pair{"mlp_bias", o.mlp_bias},
                    std::pair{"rope_theta", o.rope_theta},
                    std::pair{"rope_scaling", o.rope_scaling},
                    std::pair{"rope_factor", o.rope_factor},
                    std::pair{"rope_original_context", o.rope_original_context},
                    std::pair{"rope_low_frequency", o.rope_low_frequency},
                    std::pair{"rope_high_frequency", o.rope_high_frequency},
                    std::pair{"rope_beta_fast", o.rope_beta_fast},
                    std::pair{"rope_beta_slow", o.rope_beta_slow},
                    std::pair{"rope_attention_factor", o.rope_attention_factor}};
}

auto named_options(const spec::DiffusionOptions& o) {
  return std::tuple{std::pair{"family", o.family},
                    std::pair{"heads", o.heads},
                    std::pair{"width", o.width()},
                    std::pair{"depth", o.depth},
                    std::pair{"single_depth", o.single_depth},
                    std::pair{"latent_channels", o.in_channels},
                    std::pair{"learned_variance", o.out_channels == 2 * o.in_channels},
                    std::pair{"patch", o.patch},
                    std::pair{"sample_size", o.family == "flux" ? 0 : o.sample_size},
                    std::pair{"text_channels", o.text_channels},
                    std::pair{"pooled_channels", o.pooled_channels},
                    std::pair{"classes", o.family == "dit" ? o.classes : 0},
                    std::pair{"time features", o.family == "dit" ? o.time_shift : 1},
                    std::pair{"mlp_norm_eps", o.mlp_norm_eps},
                    std::pair{"interpolation_scale", o.interpolation_scale},
                    std::pair{"size_conditions", o.size_conditions},
                    std::pair{"max_positions", o.family == "sd3" ? o.max_positions : 0},
                    std::pair{"dual_attention_layers", o.dual_attention_layers},
                    std::pair{"qk_norm", o.qk_norm},
                    std::pair{"guidance_input", o.guidance},
                    std::pair{"rope_axes", o.rope_axes}};
}

auto named_options(const spec::AutoencoderOptions& o) {
  return std::tuple{
      std::pair{"stage_channels", o.stage_channels},    std::pair{"layers_per_stage", o.layers_per_stage},
      std::pair{"latent_channels", o.latent_channels},  std::pair{"norm_groups", o.norm_groups},
      std::pair{"quant_convs", o.quant_conv},           std::pair{"quant_convs", o.post_quant_conv},
      std::pair{"middle_attention", o.middle_attention}};
}

std::string words(const auto& value) {
  return fmt::format("{}", value);
}
std::string words(const std::vector<int64_t>& value) {
  return fmt::format("[{}]", fmt::join(value, ", "));
}

template <typename Pair>
void check_same(const std::filesystem::path& config, const Pair& theirs, const Pair& ours) {
  if (theirs.second == ours.second) return;
  throw InvalidInput(fmt::format("model.{}", theirs.first),
                     fmt::format("expected {} as in {} beside model.weights, got {}. Set it so, or leave "
                                 "model.weights out",
                                 words(theirs.second), config.string(), words(ours.second)));
}

template <typename Options>
void check_options(const std::filesystem::path& path, const Options& read, const Options& given) {
  const auto theirs = named_options(read);
  const auto ours = named_options(given);
  std::apply(
      [&](const auto&... their) {
        std::apply([&](const auto&... our) { (check_same(path, their, our), ...); }, ours);
      },
      theirs);
}

/// Whether the family has a config.json to compare with.
bool check_config(const std::filesystem::path& path, const spec::ModelOptions& options) {
  if (options.extension || !std::filesystem::exists(path)) return false;
  if (spec::is_language_model(options)) {
    check_options(path, read_language_config(path), options);
  } else if (spec::is_latent_diffusion(options)) {
    check_options(path, read_diffusion_config(path), spec::diffusion_options(options));
  } else if (spec::is_autoencoder(options)) {
    check_options(path, read_autoencoder_config(path), spec::autoencoder_options(options));
  } else {
    return false;
  }
  return true;
}

}  // namespace

bool check_start_weights(const WeightSource& source, const spec::ModelOptions& options) {
  const auto config = source.path().parent_path() / "config.json";
  const bool has_config = check_config(config, options);
  static_cast<void>(match_weights(spec::make_layer_table(options), source, model_keys(options)));
  return has_config;
}

}  // namespace chiliad::weights
