#include "chiliad/planner/detail/layer_tapes.h"

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/diffusion_tape.h"

namespace chiliad::planner::detail {
namespace {

using MakeTape = Tape (*)(const spec::LayerDecl&, const TapeSetup&);

/// Null for a kind without one.
MakeTape maker_of(spec::LayerKind kind) {
  using spec::LayerKind;
  const auto is_between = [&](LayerKind first, LayerKind last) { return first <= kind && kind <= last; };
  if (is_between(LayerKind::kTextEmbedding, LayerKind::kImageHead)) return pixel_dit_tape;
  if (is_between(LayerKind::kTokenEmbedding, LayerKind::kLanguageHead)) return language_tape;
  if (is_between(LayerKind::kAutoencoderStem, LayerKind::kAutoencoderPixelHead)) return autoencoder_tape;
  if (is_between(LayerKind::kDitEmbedding, LayerKind::kDitHead)) return dit_tape;
  if (is_between(LayerKind::kPixartEmbedding, LayerKind::kPixartHead)) return pixart_tape;
  if (is_between(LayerKind::kSd3Positions, LayerKind::kSd3Head)) return sd3_tape;
  if (is_between(LayerKind::kFluxEmbedding, LayerKind::kFluxHead)) return flux_tape;
  return nullptr;
}

}  // namespace

bool has_tape(const spec::LayerDecl& layer) {
  return maker_of(layer.kind) != nullptr;
}

LayerMemory layer_memory(const spec::LayerDecl& layer, const TapeSetup& setup) {
  const MakeTape make = maker_of(layer.kind);
  if (make == nullptr) throw InternalError(layer.name, "layer kind without a tape");
  return make(layer, setup).memory();
}

}  // namespace chiliad::planner::detail
