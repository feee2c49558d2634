#pragma once

#include <memory>

#include "chiliad/generate/picture_maker.h"

namespace chiliad::generate {

/// Of dit, pixart, sd3 and flux: noise is one of latents, which an autoencoder decodes; prompts are encoded
/// by a text encoder, or are numbers of classes.
[[nodiscard]] std::unique_ptr<PictureMaker> make_latent_maker(const spec::RunFile& run, Network network);

}  // namespace chiliad::generate
