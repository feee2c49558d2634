#include "chiliad/image/detail/bmp_header.h"

#include <cstdlib>

#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/limits.h"

namespace chiliad::image::detail {
namespace {

Info info_of(int64_t width, int64_t height) {
  Info info;
  info.format = Format::kBmp;
  info.width = static_cast<int32_t>(width);
  info.height = static_cast<int32_t>(height);
  return info;
}

}  // namespace

Outcome<Info> read_bmp_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (!view.has(0, 26)) return refuse<Info>("bmp: the file ends inside the header");
  if (view.le32(14) == 12) return {info_of(view.le16(18), view.le16(20)), {}};
  const int64_t width = static_cast<int32_t>(view.le32(18));
  const int64_t height = std::llabs(static_cast<int32_t>(view.le32(22)));  // negative: rows from the top
  if (height > INT32_MAX) return refuse<Info>("bmp: byte 22: impossible height");
  return {info_of(width, height), {}};
}

}  // namespace chiliad::image::detail
