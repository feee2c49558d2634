#pragma once

#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Layers of SD3 and SD3.5 (MMDiT): a table of positions cut at its centre, blocks in which image and text
/// have weights of their own and attend together (image first), a head. The last block gives no text; some
/// blocks have a second attention of the image alone.   Source: diffusers, SD3Transformer2DModel.
///
/// Text has no mask: padding tokens take part, as they did in training.
[[nodiscard]] std::unique_ptr<layers::Layer> make_sd3_layer(const spec::LayerDecl& decl,
                                                            const spec::DiffusionOptions& options);

}  // namespace chiliad::model
