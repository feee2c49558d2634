#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// Sizes as stored, before orientation.
[[nodiscard]] Outcome<Info> read_webp_header(std::span<const std::byte> bytes);

/// The picture, or the first frame of an animation, over `background`; turned as `stored.orientation` says.
[[nodiscard]] Outcome<HostArray> decode_webp(std::span<const std::byte> bytes, const Info& stored,
                                             const std::array<uint8_t, 3>& background);

}  // namespace chiliad::image::detail
