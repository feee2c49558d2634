#include "chiliad/layers/layer_maker.h"

#include "chiliad/base/error.h"

namespace chiliad::layers {

std::unique_ptr<Layer> make_extension_layer(const spec::LayerDecl& decl, const spec::ModelOptions& options,
                                            TensorParallel ranks) {
  const auto* maker = dynamic_cast<const ExtensionMaker*>(decl.extension->maker.get());
  if (maker == nullptr)
    throw InternalError(decl.name, fmt::format("layer kind '{}' without a builder", decl.extension->kind));
  return maker->make(decl, options, ranks);
}

}  // namespace chiliad::layers
