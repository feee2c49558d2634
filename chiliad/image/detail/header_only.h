#pragma once

#include <cstddef>
#include <span>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

// Formats whose header is read but whose pixels are not decoded yet. Sizes are as stored, before orientation.
[[nodiscard]] Outcome<Info> read_webp_header(std::span<const std::byte> bytes);
[[nodiscard]] Outcome<Info> read_gif_header(std::span<const std::byte> bytes);
[[nodiscard]] Outcome<Info> read_bmp_header(std::span<const std::byte> bytes);

}  // namespace chiliad::image::detail
