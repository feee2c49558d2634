#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/autoencoder.h"

namespace chiliad::model {

/// What an autoencoder computes in; whatever autocast says around it.
enum class AutoencoderPrecision { kFp32, kBf16 };

/// Sides of tiles in pixels; 0: pictures are whole. Each is a multiple of the factor.
/// Tiles have statistics of their own in the norms, and attention ends at their borders: results differ a
/// little from those of the whole everywhere, most at seams.
struct AutoencoderTiling {
  int64_t tile = 0;
  int64_t overlap = 0;  ///< blended along straight lines; 0 or more, below tile
};

/// Throws InvalidInput for tiles that cannot be with this factor.
void check_tiling(const AutoencoderTiling& tiling, int64_t factor);

/// A normal distribution for each latent, [B, latent channels, h, w] fp32.
struct LatentDistribution {
  at::Tensor mean;
  at::Tensor logvar;  ///< within -30 and 20
};

/// A draw of each item, a function of its key alone: mean + exp(logvar / 2) * noise.
[[nodiscard]] at::Tensor sample_latents(const LatentDistribution& latents,
                                        std::span<const uint64_t> draw_keys);

/// Latents as diffusion models see them: (latents - shift_factor) * scaling_factor. The autoencoder itself
/// never applies it: callers do, once, with these two.
[[nodiscard]] at::Tensor to_model_space(const spec::AutoencoderOptions& options, const at::Tensor& latents);
/// Back: latents / scaling_factor + shift_factor.
[[nodiscard]] at::Tensor from_model_space(const spec::AutoencoderOptions& options, const at::Tensor& latents);

/// A frozen AutoencoderKL. Const functions are thread-safe, keep no graph, and take memory for few
/// activations at a time. Source: diffusers, AutoencoderKL.
class Autoencoder {
 public:
  /// From a folder with config.json and weights in safetensors, old or new attention names. Throws
  /// InvalidInput with the whole report where they do not fit each other.
  [[nodiscard]] static Autoencoder load(const std::filesystem::path& folder, AutoencoderPrecision precision);
  /// weights: of each layer of the table (spec::families::autoencoder_table), copied where they are not of
  /// the precision.
  Autoencoder(const spec::AutoencoderOptions& options, const std::vector<std::vector<at::Tensor>>& weights,
              AutoencoderPrecision precision);

  /// pixels: [B, 3, H, W] in [-1, 1]. Throws InvalidInput where H or W is no multiple of the factor (naming
  /// the sizes beside it), where pixels or results are not finite, and for tiles that cannot be.
  [[nodiscard]] LatentDistribution encode(const at::Tensor& pixels,
                                          const AutoencoderTiling& tiling = {}) const;
  /// latents: [B, latent channels, h, w], not in model space.   returns: fp32 [B, 3, H, W], not clamped.
  /// Throws InvalidInput where latents or pixels are not finite, and for tiles that cannot be.
  [[nodiscard]] at::Tensor decode(const at::Tensor& latents, const AutoencoderTiling& tiling = {}) const;

  [[nodiscard]] const spec::AutoencoderOptions& options() const { return options_; }

 private:
  [[nodiscard]] at::Tensor encode_part(const at::Tensor& pixels) const;
  [[nodiscard]] at::Tensor decode_part(const at::Tensor& latents) const;

  spec::AutoencoderOptions options_;
  std::vector<std::unique_ptr<layers::Layer>> encoder_;
  std::vector<std::unique_ptr<layers::Layer>> decoder_;
};

}  // namespace chiliad::model
