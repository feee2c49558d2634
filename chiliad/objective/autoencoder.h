#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "chiliad/objective/feature_loss.h"

namespace chiliad::objective {

enum class ReconstructionError { kAbsolute, kSquared };

struct AutoencoderLossOptions {
  ReconstructionError error = ReconstructionError::kAbsolute;
  double kl_weight = 1e-6;  ///< of the sum over latent values, beside the sum over pixel values
  const FeatureNetwork* features = nullptr;  ///< none: no perceptual loss
  double feature_weight = 1.0;
};

/// What an autoencoder's layers leave in the carry, in fp32 or fp64.
struct AutoencoderOutput {
  at::Tensor reconstruction;  ///< [B, 3, H, W]
  at::Tensor mean;            ///< [B, C, h, w]
  at::Tensor logvar;          ///< [B, C, h, w]
};

/// Losses of each item, [B], in the type of the output; they carry gradients to it.
struct AutoencoderLosses {
  at::Tensor total;           ///< reconstruction + kl_weight * kl / values + feature_weight * features
  at::Tensor reconstruction;  ///< mean error over the `values` = 3 H W of the picture
  at::Tensor kl;              ///< sum over latent values
  at::Tensor features;        ///< of FeatureNetwork; undefined without one
};

/// uint8 [B, H, W, 3] to the carry's "pixels": fp32 [B, 3, H, W] in [-1, 1].
[[nodiscard]] at::Tensor to_pixels(const at::Tensor& pictures);

/// The carry's "noise", standard normal [B, channels, rows, columns]; item i's from draw_keys[i] alone.
[[nodiscard]] at::Tensor draw_latent_noise(std::span<const uint64_t> draw_keys, int64_t channels,
                                           int64_t rows, int64_t columns);

/// Divergence of each item's latents from the standard normal distribution, [B]:
/// sum (mean^2 + exp(logvar) - 1 - logvar) / 2.
[[nodiscard]] at::Tensor latent_divergence(const at::Tensor& mean, const at::Tensor& logvar);

/// (sum of errors + kl_weight * sum of divergence) / values: latent diffusion's loss, divided by the
/// picture's values, so that its kl_weight holds and the loss does not grow with the picture. Source: Rombach
/// et al., latent diffusion, without the adversarial part; the perceptual one by a network of the user's.
[[nodiscard]] AutoencoderLosses autoencoder_losses(const AutoencoderLossOptions& options,
                                                   const AutoencoderOutput& output, const at::Tensor& pixels);

}  // namespace chiliad::objective
