#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of Flux: squares of 2 x 2 latents as tokens, rotary positions, blocks with two streams (text
/// first), blocks in which both share weights and the MLP runs beside the attention, a head.
/// Source: diffusers, FluxTransformer2DModel.
///
/// Carry: "rope_cos" and "rope_sin" [T + N, head size / 2] fp32 too. Text has no mask: padding tokens take
/// part, as they did in training.
[[nodiscard]] std::unique_ptr<layers::Layer> make_flux_layer(const spec::LayerDecl& decl,
                                                             const spec::DiffusionOptions& options);

/// Where tokens are, as (0, row, column); text is at the origin.   returns: [text + rows * columns, 3] fp32
[[nodiscard]] at::Tensor flux_positions(int64_t text, int64_t rows, int64_t columns);

}  // namespace chiliad::model
