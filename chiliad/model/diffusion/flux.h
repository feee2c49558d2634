#pragma once

#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of Flux: squares of 2 x 2 latents as tokens, rotary positions, blocks with two streams (text
/// first), blocks in which both share weights and the MLP runs beside the attention, a head.
/// Source: diffusers, FluxTransformer2DModel.
///
/// Carry: "rope_cos" and "rope_sin" [T + N, head size / 2] fp32 too. Text has no mask: padding tokens take
/// part, as they did in training. In a pack captions come first, then pictures.
[[nodiscard]] std::unique_ptr<layers::Layer> make_flux_layer(const spec::LayerDecl& decl,
                                                             const spec::DiffusionOptions& options);

/// Where tokens are, as (0, row, column), each picture's from its own origin, where all text is too.
/// returns: [text + patches of all grids, 3] fp32
[[nodiscard]] at::Tensor flux_positions(int64_t text, const std::vector<Grid>& grids);

}  // namespace chiliad::model
