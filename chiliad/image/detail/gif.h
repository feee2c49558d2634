#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// The size is the screen's, widened where the first frame lies beyond it, as Pillow does.
[[nodiscard]] Outcome<Info> read_gif_header(std::span<const std::byte> bytes);

/// The first frame on the screen. Pixels that it does not cover, and its transparent ones, are `background`.
[[nodiscard]] Outcome<HostArray> decode_gif(std::span<const std::byte> bytes, const Info& stored,
                                            const std::array<uint8_t, 3>& background);

}  // namespace chiliad::image::detail
