#pragma once

#include <string>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::spec::families {

/// pixel_dit: text encoder, patch and time embedding, diffusion blocks, head.
[[nodiscard]] LayerTable pixel_dit_table(const ModelOptions& options);
[[nodiscard]] Work pixel_dit_work(const LayerDecl& layer, const BatchShape& shape);

/// llama and qwen2: token embedding, decoder blocks, head with the loss; keys of Hugging Face checkpoints.
[[nodiscard]] LayerTable language_table(const ModelOptions& options);
[[nodiscard]] Work language_work(const LayerDecl& layer, const BatchShape& shape);

/// dit, pixart, sd3 and flux: embedding, blocks, head; keys of diffusers. Throws InvalidInput for options
/// that do not fit together.
[[nodiscard]] LayerTable diffusion_table(const DiffusionOptions& options);
[[nodiscard]] Work diffusion_work(const LayerDecl& layer, const BatchShape& shape);

/// FLOPs of `rows` rows through a linear layer.
[[nodiscard]] inline double linear_flops(double rows, double in, double out) {
  return 2.0 * rows * in * out;
}

}  // namespace chiliad::spec::families
