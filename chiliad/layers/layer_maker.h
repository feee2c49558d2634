#pragma once

#include <functional>
#include <memory>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/extension.h"

namespace chiliad::layers {

/// Makes a layer of an extension. decl: with the shapes that this rank holds. What is given is not kept but
/// `ranks`, which outlives the layer.
using MakeLayer = std::function<std::unique_ptr<Layer>(
    const spec::LayerDecl& decl, const spec::ModelOptions& options, TensorParallel ranks)>;

/// What spec::ExtensionLayer::maker is where there is torch.
struct ExtensionMaker final : spec::LayerMaker {
  explicit ExtensionMaker(MakeLayer given) : make(std::move(given)) {}
  MakeLayer make;
};

/// The layer of a declaration of kind kExtension.
[[nodiscard]] std::unique_ptr<Layer> make_extension_layer(const spec::LayerDecl& decl,
                                                          const spec::ModelOptions& options,
                                                          TensorParallel ranks);

}  // namespace chiliad::layers
