#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/spec/options/autoencoder.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::spec {

struct FamilyUse;

/// Section `model`. Families: `pixel_dit`, a diffusion transformer on pixels; `dit`, `pixart`, `sd3` and
/// `flux`, diffusion transformers on latents; `autoencoder`, which makes latents; `llama` and `qwen2`, causal
/// language models. All but pixel_dit have the parameters of Hugging Face checkpoints. Options of another
/// family keep their defaults.
struct ModelOptions {
  std::string family = "pixel_dit";
  int64_t width = 256;  ///< D
  int64_t depth = 4;    ///< transformer blocks
  int64_t heads = 4;
  std::string weights;  ///< folder or file of published weights to start from; empty: drawn by run.seed

  // Diffusion transformers
  int64_t patch = 8;              ///< pixels, or latents, a side
  int64_t text_max_tokens = 128;  ///< captions are cut here (pixel_dit: never inside a UTF-8 character)

  // pixel_dit
  int64_t mlp_ratio = 4;
  int64_t text_layers = 1;  ///< encoder layers over the caption tokens

  // dit, pixart, sd3, flux (spec/options/diffusion.h says more) and autoencoder
  int64_t latent_channels = 4;
  // dit, pixart, sd3, flux
  int64_t latent_pixels = 8;         ///< pixels a side of one latent
  bool learned_variance = false;     ///< dit, pixart: a second half of channels
  int64_t sample_size = 32;          ///< dit, pixart, sd3: latents a side at which patches are one apart
  int64_t text_channels = 0;         ///< of the text encoder's tokens
  int64_t pooled_channels = 0;       ///< sd3, flux
  int64_t classes = 0;               ///< dit; needed
  double interpolation_scale = 1.0;  ///< pixart
  bool size_conditions = false;      ///< pixart
  int64_t max_positions = 96;        ///< sd3
  std::vector<int64_t> dual_attention_layers;     ///< sd3
  bool qk_norm = false;                           ///< sd3
  int64_t single_depth = 0;                       ///< flux
  bool guidance_input = false;                    ///< flux: the guidance scale is an input
  std::vector<int64_t> rope_axes = {16, 56, 56};  ///< flux

  // autoencoder (spec/options/autoencoder.h)
  std::vector<int64_t> stage_channels = {128, 256, 512, 512};
  int64_t layers_per_stage = 2;
  int64_t norm_groups = 32;
  bool quant_convs = true;
  bool middle_attention = true;

  // llama, qwen2
  int64_t kv_heads = 0;    ///< heads of keys and values; divides heads; 0: as many as heads
  int64_t head_size = 0;   ///< 0: width / heads
  int64_t mlp_width = 0;   ///< needed
  int64_t vocabulary = 0;  ///< rows of the embedding, as padded; needed
  double rope_theta = 10000.0;
  std::string rope_scaling = "none";  ///< none, linear, dynamic, llama3 or yarn
  double rope_factor = 1.0;
  int64_t rope_original_context = 0;   ///< dynamic, llama3, yarn: positions before the scaling
  double rope_low_frequency = 1.0;     ///< llama3
  double rope_high_frequency = 4.0;    ///< llama3
  double rope_beta_fast = 32.0;        ///< yarn
  double rope_beta_slow = 1.0;         ///< yarn
  double rope_attention_factor = 0.0;  ///< yarn: multiplies cos and sin; 0: 0.1 ln(factor) + 1
  double norm_eps = 1e-5;
  bool tied = false;            ///< the head uses the embedding's table
  bool attention_bias = false;  ///< llama: q, k, v and o; qwen2 always has biases on q, k, v alone
  bool mlp_bias = false;        ///< llama

  /// A family of an extension, which takes the place of `family`'s layers (spec/extension.h). Shared by all
  /// copies of the options, unchanged once the run file is read.
  std::shared_ptr<FamilyUse> extension;
};

/// Whether the family is a causal language model.
[[nodiscard]] inline bool is_language_model(const ModelOptions& options) {
  return options.family == "llama" || options.family == "qwen2";
}
/// Whether the family is a diffusion transformer on latents.
[[nodiscard]] inline bool is_latent_diffusion(const ModelOptions& options) {
  return options.family == "dit" || options.family == "pixart" || options.family == "sd3" ||
         options.family == "flux";
}
[[nodiscard]] inline bool is_autoencoder(const ModelOptions& options) {
  return options.family == "autoencoder";
}
/// Whether pictures are made from captions (dit has classes).
[[nodiscard]] inline bool reads_captions(const ModelOptions& options) {
  return options.family == "pixel_dit" || (is_latent_diffusion(options) && options.family != "dit");
}

/// Whether every item is trained at a time of its own.
[[nodiscard]] inline bool draws_times(const ModelOptions& options) {
  return options.family == "pixel_dit" || is_latent_diffusion(options);
}

/// Whether the network sees captions padded to text_max_tokens, padding as the text encoder gives it, as in
/// the pipelines of SD3 and Flux; else padding is masked.
[[nodiscard]] inline bool pads_captions(const ModelOptions& options) {
  return options.family == "sd3" || options.family == "flux";
}

/// The same options as the families' own code takes them.
[[nodiscard]] DiffusionOptions diffusion_options(const ModelOptions& options);
[[nodiscard]] AutoencoderOptions autoencoder_options(const ModelOptions& options);

/// Pixels a side of one image token: a patch, or of an autoencoder one latent.
[[nodiscard]] int64_t token_pixels(const ModelOptions& options);

}  // namespace chiliad::spec
