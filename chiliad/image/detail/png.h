#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chiliad/image/detail/row_stages.h"
#include "chiliad/image/detail/srgb_transform.h"
#include "chiliad/image/image.h"

namespace chiliad::image::detail {

enum class PngColour : uint8_t { kGrey = 0, kRgb = 2, kPalette = 3, kGreyAlpha = 4, kRgbAlpha = 6 };

/// A chunk iCCP.
struct PngProfile {
  std::span<const std::byte> body{};
  bool crc_fits = false;
};

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
  PngProfile profile;                       ///< where info.flags have kIccProfile
  int64_t idat_bytes = 0;
  std::span<const std::byte> cut_idat;  ///< to salvage: what there is of the body of the last IDAT

  [[nodiscard]] int channels() const;
};

/// Walks the chunks by their lengths. salvage: an IDAT that the file's end cuts is taken as far as it goes.
[[nodiscard]] Outcome<PngFile> read_png_file(std::span<const std::byte> bytes, bool salvage = false);

struct PngLook {
  std::array<uint8_t, 3> background{};
  const SrgbTransform* colours = nullptr;  ///< null: as they are stored
};

/// Decodes to RGB8, turned as `file.info.orientation` wants it, over the background.
[[nodiscard]] Outcome<HostArray> decode_png(const PngFile& file, const PngLook& look);
/// The same for a file that is not interlaced, as stored: pushes the rows of the window. Returns why the
/// picture is refused, or nothing; rows may have been pushed before damage is seen.
[[nodiscard]] std::string decode_png(const PngFile& file, const PngLook& look, const Window& window,
                                     RowStage& out);

/// What there is of a damaged picture, turned, black where nothing is; checksums are not looked at. Nothing
/// where no row decodes.
[[nodiscard]] std::optional<HostArray> salvage_png(const PngFile& file, const PngLook& look);

}  // namespace chiliad::image::detail
