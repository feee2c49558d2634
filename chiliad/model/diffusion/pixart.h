#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of PixArt-alpha and PixArt-Sigma: patches with positions that are stretched over pictures of every
/// shape, one modulation for all blocks with a table in each (adaLN-single), self-attention, cross-attention
/// to the caption, a head.   Source: PixArt-alpha; diffusers, PixArtTransformer2DModel.
///
/// Carry: "modulation" [B, 6, D] too. Tokens of the caption whose "text_mask" is false have no effect.
[[nodiscard]] std::unique_ptr<layers::Layer> make_pixart_layer(const spec::LayerDecl& decl,
                                                               const spec::DiffusionOptions& options);

}  // namespace chiliad::model
