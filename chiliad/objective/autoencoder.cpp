#include "chiliad/objective/autoencoder.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/ops/keyed_noise.h"

namespace chiliad::objective {

at::Tensor to_pixels(const at::Tensor& pictures) {
  return pictures.permute({0, 3, 1, 2}).to(at::kFloat).contiguous().div_(127.5).sub_(1.0);
}

at::Tensor draw_latent_noise(std::span<const uint64_t> draw_keys, int64_t channels, int64_t rows,
                             int64_t columns) {
  const auto items = static_cast<int64_t>(draw_keys.size());
  return ops::keyed_noise(draw_keys, Draw::kLatent, channels * rows * columns)
      .view({items, channels, rows, columns});
}

at::Tensor latent_divergence(const at::Tensor& mean, const at::Tensor& logvar) {
  return (mean.square() + logvar.exp() - 1.0 - logvar).sum({1, 2, 3}) * 0.5;
}

AutoencoderLosses autoencoder_losses(const AutoencoderLossOptions& options, const AutoencoderOutput& output,
                                     const at::Tensor& pixels) {
  CHILIAD_CHECK(output.reconstruction.sizes() == pixels.sizes());
  const at::Tensor difference = output.reconstruction - pixels;
  const at::Tensor errors =
      options.error == ReconstructionError::kAbsolute ? difference.abs() : difference.square();
  AutoencoderLosses losses;
  losses.reconstruction = errors.mean({1, 2, 3});
  losses.kl = latent_divergence(output.mean, output.logvar);
  const auto values = static_cast<double>(pixels.numel() / pixels.size(0));
  losses.total = losses.reconstruction + losses.kl * (options.kl_weight / values);
  if (options.features != nullptr) {
    losses.features = options.features->losses(output.reconstruction, pixels);
    losses.total = losses.total + losses.features * options.feature_weight;
  }
  return losses;
}

}  // namespace chiliad::objective
