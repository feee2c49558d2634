#pragma once

#include "chiliad/planner/detail/tape_ops.h"

namespace chiliad::planner::detail {

/// What a layer needs on the rank that has most of it. layer: with logical shapes. A new kind needs a tape in
/// the file of its family; the contract test of layers compares each with what is counted.
[[nodiscard]] LayerMemory layer_memory(const spec::LayerDecl& layer, const TapeSetup& setup);

/// Whether the layer's kind has a tape.
[[nodiscard]] bool has_tape(const spec::LayerDecl& layer);

/// The tapes of pixel_dit, of the language models and of autoencoders; those of the diffusion transformers on
/// latents are in diffusion_tape.h.
[[nodiscard]] Tape pixel_dit_tape(const spec::LayerDecl& layer, const TapeSetup& setup);
[[nodiscard]] Tape language_tape(const spec::LayerDecl& layer, const TapeSetup& setup);
[[nodiscard]] Tape autoencoder_tape(const spec::LayerDecl& layer, const TapeSetup& setup);

}  // namespace chiliad::planner::detail
