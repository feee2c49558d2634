#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/model.h"

namespace chiliad::model {

/// Layers of the pixel-space diffusion transformer: a small text encoder over learned token embeddings, patch
/// and time embedding, blocks with adaLN-single modulation, self-attention, cross-attention to the caption
/// and an MLP, and a head. Source of the block: PixArt-alpha (adaLN-single: one modulation for all blocks
/// plus a table a block).
///
/// With tensor parallelism "text", "condition" and "modulation" are whole on every rank; "image" and
/// "prediction" are [B, N_rank, ...], each rank's rows (spec::even_part) of the N that image_positions has.
[[nodiscard]] std::unique_ptr<layers::Layer> make_pixel_dit_layer(const spec::LayerDecl& decl,
                                                                  const spec::ModelOptions& options,
                                                                  layers::TensorParallel ranks);

}  // namespace chiliad::model
