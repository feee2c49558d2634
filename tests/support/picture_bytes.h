#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "chiliad/base/host_array.h"

namespace chiliad::test {

using ByteVector = std::vector<std::byte>;

/// A picture whose pixels all differ from their mirror images: uint8 [H, W, 3].
[[nodiscard]] HostArray sloped_picture(int32_t width, int32_t height);

/// A little- or big-endian TIFF block with one directory that holds an orientation.
[[nodiscard]] ByteVector exif_block(uint16_t orientation, bool little_endian = true);
/// The JPEG with one more segment right after SOI.
[[nodiscard]] ByteVector with_jpeg_segment(std::span<const std::byte> jpeg, uint8_t marker,
                                           std::string_view prefix, std::span<const std::byte> body);
/// The JPEG with `tiff` as its EXIF.
[[nodiscard]] ByteVector with_exif(std::span<const std::byte> jpeg, std::span<const std::byte> tiff);

/// A chunk with its length and CRC.
[[nodiscard]] ByteVector png_chunk(std::string_view type, std::span<const std::byte> body);
/// The PNG with `chunk` right after IHDR.
[[nodiscard]] ByteVector with_png_chunk(std::span<const std::byte> png, std::span<const std::byte> chunk);

}  // namespace chiliad::test
