#pragma once

#include <string>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/options/autoencoder.h"
#include "chiliad/spec/options/diffusion.h"
#include "chiliad/spec/options/text_encoder.h"

namespace chiliad::spec::families {

/// pixel_dit: text encoder, patch and time embedding, diffusion blocks, head.
[[nodiscard]] LayerTable pixel_dit_table(const ModelOptions& options);
[[nodiscard]] Work pixel_dit_work(const LayerDecl& layer, const BatchShape& shape);

/// llama and qwen2: token embedding, decoder blocks, head with the loss; keys of Hugging Face checkpoints.
[[nodiscard]] LayerTable language_table(const ModelOptions& options);
[[nodiscard]] Work language_work(const LayerDecl& layer, const BatchShape& shape);

/// bert, clip_text and t5: embedding, encoder blocks, pooler or last norm; keys of Hugging Face checkpoints.
/// Throws InvalidInput for sizes that no encoder of the family has.
[[nodiscard]] LayerTable text_encoder_table(const TextEncoderOptions& options);
[[nodiscard]] Work text_encoder_work(const LayerDecl& layer, const BatchShape& shape);

/// AutoencoderKL: stem, stages and latent head of the encoder, then latent stem, middle, stages and head of
/// the decoder; keys of diffusers' checkpoints. Throws InvalidInput for sizes that cannot work.
[[nodiscard]] LayerTable autoencoder_table(const AutoencoderOptions& options);
/// shape.image_tokens: latent positions of one item.
[[nodiscard]] Work autoencoder_work(const LayerDecl& layer, const BatchShape& shape);

/// dit, pixart, sd3 and flux: embedding, blocks, head; keys of diffusers. Throws InvalidInput for options
/// that do not fit together.
[[nodiscard]] LayerTable diffusion_table(const DiffusionOptions& options);
[[nodiscard]] Work diffusion_work(const LayerDecl& layer, const BatchShape& shape);

/// FLOPs of `rows` rows through a linear layer.
[[nodiscard]] inline double linear_flops(double rows, double in, double out) {
  return 2.0 * rows * in * out;
}

}  // namespace chiliad::spec::families
