#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "chiliad/image/detail/row_stages.h"
#include "chiliad/image/detail/srgb_transform.h"
#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// Walks the segments up to the first scan. Sizes are as stored, before orientation.
[[nodiscard]] Outcome<Info> read_jpeg_header(std::span<const std::byte> bytes);

/// An APP2 segment with a part of the ICC profile.
struct ProfileSegment {
  uint8_t number = 0;  ///< from 1
  uint8_t total = 0;
  std::span<const std::byte> bytes{};
};
/// Those up to the first scan, at most 255.
[[nodiscard]] std::vector<ProfileSegment> profile_segments(std::span<const std::byte> bytes);

struct JpegRequest {
  Info stored;            ///< what read_jpeg_header said
  int64_t max_bytes = 0;  ///< also bounds the coefficients that progressive files keep
  int denominator = 1;    ///< 1, 2, 4 or 8: sides are divided by it and rounded up (DCT scaling)
  Window window{};        ///< of the picture so scaled; an empty one: all of it
  const SrgbTransform* colours = nullptr;  ///< null: as they are stored
};

/// Pushes the rows of the window as stored, without orientation. Returns why the picture is refused, or
/// nothing; rows may have been pushed before damage is seen. Rows and columns outside of the window cost
/// entropy decoding only, and the pixels inside are the same as without one.
[[nodiscard]] std::string decode_jpeg(std::span<const std::byte> bytes, const JpegRequest& request,
                                      RowStage& out);

/// Whether every component of the frame has a scan; libjpeg takes a component without one for grey.
[[nodiscard]] bool all_components_scanned(std::span<const std::byte> bytes);

}  // namespace chiliad::image::detail
