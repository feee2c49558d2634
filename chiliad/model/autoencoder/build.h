#pragma once

#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/autoencoder.h"

namespace chiliad::model::autoencoder {

/// The layers of an autoencoder without parameters yet, in the order of its table.
/// Source: diffusers, AutoencoderKL.
///
/// Carry: the encoder takes "pixels" [B, 3, H, W] in [-1, 1], height and width multiples of options.factor(),
/// and writes "mean" and "logvar" [B, latent channels, h, w] in fp32 at least, logvar within -30 and 20. The
/// decoder takes "latents" where the carry has them, else mean + exp(logvar / 2) * "noise", or the mean where
/// there is no noise; it writes "reconstruction" [B, 3, H, W] in fp32 at least. Between layers: "hidden".
[[nodiscard]] std::vector<std::unique_ptr<layers::Layer>> build_autoencoder(
    const spec::AutoencoderOptions& options);

/// Its layers up to this one are the encoder, the others the decoder.
[[nodiscard]] size_t num_encoder_layers(const spec::AutoencoderOptions& options);

}  // namespace chiliad::model::autoencoder
