#include "chiliad/image/detail/header_only.h"

#include <cstdlib>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/exif.h"
#include "chiliad/image/detail/limits.h"

namespace chiliad::image::detail {
namespace {

Info info_of(Format format, int64_t width, int64_t height) {
  Info info;
  info.format = format;
  info.width = static_cast<int32_t>(width);
  info.height = static_cast<int32_t>(height);
  return info;
}

uint8_t webp_orientation(const ByteView& bytes) {
  for (int64_t at = 12; bytes.has(at, 8);) {
    const int64_t size = bytes.le32(at + 4);
    if (bytes.starts_with("EXIF", at)) {
      const int64_t prefix = bytes.starts_with(std::string_view("Exif\0\0", 6), at + 8) ? 6 : 0;
      return exif_orientation(bytes.part(at + 8 + prefix, size - prefix));
    }
    at += 8 + size + (size & 1);
  }
  return 1;
}

Info extended_webp(const ByteView& bytes) {
  Info info = info_of(Format::kWebp, int64_t{bytes.le24(24)} + 1, int64_t{bytes.le24(27)} + 1);
  const uint8_t features = bytes.u8(20);
  if ((features & 0x02U) != 0) info.flags |= kAnimated;
  if ((features & 0x08U) != 0) info.orientation = webp_orientation(bytes);
  if ((features & 0x10U) != 0) info.flags |= kAlpha;
  if ((features & 0x20U) != 0) info.flags |= kIccProfile;
  return info;
}

/// Steps over the blocks of a GIF until it has seen two pictures or the end.
bool gif_has_two_pictures(const ByteView& bytes) {
  int64_t at = 13;
  if ((bytes.u8(10) & 0x80U) != 0) at += 3 << ((bytes.u8(10) & 7U) + 1);
  int pictures = 0;
  while (bytes.has(at, 1) && pictures < 2) {
    const uint8_t kind = bytes.u8(at);
    if (kind == 0x2c) {
      ++pictures;
      const uint8_t packed = bytes.u8(at + 9);
      at += 11;
      if ((packed & 0x80U) != 0) at += 3 << ((packed & 7U) + 1);
    } else if (kind == 0x21) {
      at += 2;
    } else {
      break;
    }
    while (bytes.u8(at) != 0) at += 1 + bytes.u8(at);
    ++at;
  }
  return pictures >= 2;
}

}  // namespace

Outcome<Info> read_webp_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (view.starts_with("VP8X", 12) && view.has(20, 10)) return {extended_webp(view), {}};
  if (view.starts_with("VP8L", 12) && view.u8(20) == 0x2f && view.has(20, 5)) {
    const uint32_t bits = view.le32(21);
    Info info = info_of(Format::kWebp, (bits & 0x3fffU) + 1, (bits >> 14U & 0x3fffU) + 1);
    if ((bits >> 28U & 1U) != 0) info.flags |= kAlpha;
    return {info, {}};
  }
  if (view.starts_with("VP8 ", 12) && view.le24(23) == 0x2a019d && view.has(20, 10)) {
    return {info_of(Format::kWebp, view.le16(26) & 0x3fffU, view.le16(28) & 0x3fffU), {}};
  }
  return refuse<Info>("webp: byte 12: expected a whole VP8, VP8L or VP8X chunk");
}

Outcome<Info> read_gif_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (!view.has(0, 13)) return refuse<Info>("gif: the file ends inside the header");
  Info info = info_of(Format::kGif, view.le16(6), view.le16(8));
  info.flags = kPalette;
  if (gif_has_two_pictures(view)) info.flags |= kAnimated;
  return {info, {}};
}

Outcome<Info> read_bmp_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (!view.has(0, 26)) return refuse<Info>("bmp: the file ends inside the header");
  if (view.le32(14) == 12) return {info_of(Format::kBmp, view.le16(18), view.le16(20)), {}};
  const int64_t width = static_cast<int32_t>(view.le32(18));
  const int64_t height = std::llabs(static_cast<int32_t>(view.le32(22)));  // negative: rows from the top
  if (height > INT32_MAX) return refuse<Info>("bmp: byte 22: impossible height");
  return {info_of(Format::kBmp, width, height), {}};
}

}  // namespace chiliad::image::detail
