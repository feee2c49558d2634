#include "chiliad/planner/detail/layer_tapes.h"

#include "chiliad/base/error.h"

namespace chiliad::planner::detail {

bool has_tape(const spec::LayerDecl& layer) {
  return static_cast<int>(layer.kind) < spec::kNumModelKinds;
}

LayerMemory layer_memory(const spec::LayerDecl& layer, const TapeSetup& setup) {
  switch (layer.kind) {
    case spec::LayerKind::kTextEmbedding:
    case spec::LayerKind::kTextBlock:
    case spec::LayerKind::kImageEmbedding:
    case spec::LayerKind::kDiffusionBlock:
    case spec::LayerKind::kImageHead:
      return pixel_dit_tape(layer, setup).memory();
    case spec::LayerKind::kTokenEmbedding:
    case spec::LayerKind::kDecoderBlock:
    case spec::LayerKind::kLanguageHead:
      return language_tape(layer, setup).memory();
    default:
      throw InternalError(layer.name, "layer kind without a tape");
  }
}

}  // namespace chiliad::planner::detail
