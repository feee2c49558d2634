#pragma once

#include <cstddef>
#include <span>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// A BMP is recognised and not decoded.
[[nodiscard]] Outcome<Info> read_bmp_header(std::span<const std::byte> bytes);

}  // namespace chiliad::image::detail
