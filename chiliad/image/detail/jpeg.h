#pragma once

#include <cstddef>
#include <span>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// Walks the segments up to the first scan. Sizes are as stored, before orientation.
[[nodiscard]] Outcome<Info> read_jpeg_header(std::span<const std::byte> bytes);

/// Decodes a JPEG whose stored header is `stored`, writing pixels as `stored.orientation` wants them.
/// `max_bytes` also bounds the coefficients that progressive files keep.
[[nodiscard]] Outcome<HostArray> decode_jpeg(std::span<const std::byte> bytes, const Info& stored,
                                             int64_t max_bytes);

/// Whether every component of the frame has a scan; libjpeg takes a component without one for grey.
[[nodiscard]] bool all_components_scanned(std::span<const std::byte> bytes);

}  // namespace chiliad::image::detail
