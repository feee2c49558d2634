#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of the class-conditional DiT: patches with fixed positions, a condition of time and class, blocks
/// with adaLN-zero, a head.   Source: facebookresearch/DiT; diffusers, DiTTransformer2DModel.
///
/// The embedder of times and classes is one, as in the paper; diffusers' files repeat it in each block.
[[nodiscard]] std::unique_ptr<layers::Layer> make_dit_layer(const spec::LayerDecl& decl,
                                                            const spec::DiffusionOptions& options);

}  // namespace chiliad::model
