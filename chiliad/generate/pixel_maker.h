#pragma once

#include <memory>

#include "chiliad/generate/picture_maker.h"

namespace chiliad::generate {

/// Of pixel_dit: noise is one of patches, prompts are bytes.
[[nodiscard]] std::unique_ptr<PictureMaker> make_pixel_maker(const spec::RunFile& run, Network network);

/// Where pictures begin: standard normal [B, count], each row of its request's seed alone.
[[nodiscard]] at::Tensor initial_noise(const std::vector<Request>& batch, int64_t count);

}  // namespace chiliad::generate
