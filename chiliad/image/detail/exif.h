#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace chiliad::image::detail {

/// The orientation (1..8) of a TIFF block as it stands in EXIF, without its "Exif" header. Anything broken
/// counts as 1: metadata must never cost the picture. Reads the first directory only and follows no offsets
/// out of it.
[[nodiscard]] uint8_t exif_orientation(std::span<const std::byte> tiff);

}  // namespace chiliad::image::detail
