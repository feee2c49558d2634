#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chiliad/image/detail/row_stages.h"
#include "chiliad/image/image.h"

namespace chiliad::image::detail {

enum class PngColour : uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

/// The chunks of a PNG that make its pixels, and what the header says. Other chunks are passed over unread.
struct PngFile {
  Info info;  ///< sizes as stored, before orientation
  PngColour colour = PngColour::kGrey;
  uint8_t bit_depth = 0;
  /// Signature and IHDR, PLTE, and the IDATs: whole chunks that follow each other in the file stand as one
  /// part.
  std::vector<std::span<const std::byte>> parts;
  std::span<const std::byte> palette;       ///< body of PLTE
  std::span<const std::byte> transparency;  ///< body of tRNS
  int64_t idat_bytes = 0;

  [[nodiscard]] int channels() const;
};

/// Walks the chunks by their lengths.
[[nodiscard]] Outcome<PngFile> read_png_file(std::span<const std::byte> bytes);

/// Decodes to RGB8, turned as `file.info.orientation` wants it, over `background`.
[[nodiscard]] Outcome<HostArray> decode_png(const PngFile& file, const std::array<uint8_t, 3>& background);
/// The same for a file that is not interlaced, as stored: pushes the rows of the window. Returns why the
/// picture is refused, or nothing; rows may have been pushed before damage is seen.
[[nodiscard]] std::string decode_png(const PngFile& file, const std::array<uint8_t, 3>& background,
                                     const Window& window, RowStage& out);

}  // namespace chiliad::image::detail
