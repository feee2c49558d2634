#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/image/image.h"

namespace chiliad::image {

/// How a picture gets into the square that a vision encoder sees.
enum class VisionFit {
  kPad,   ///< padded to a square with CLIP's mean colour (LLaVA-1.5)
  kCrop,  ///< the middle square (CLIP)
  kTiles  ///< LLaVA-NeXT: the whole picture, and tiles of it; of several pictures each as kPad
};
/// pad, crop or tiles.
[[nodiscard]] VisionFit vision_fit(std::string_view name);

/// What a vision encoder makes of pictures in a conversation. All functions are pure and thread-safe.
struct VisionView {
  int32_t side = 336;  ///< of a tile, pixels
  int32_t patch = 14;  ///< divides side
  VisionFit fit = VisionFit::kPad;

  [[nodiscard]] Digest digest() const;
  [[nodiscard]] int64_t tile_positions() const { return int64_t{side / patch} * (side / patch); }
  [[nodiscard]] int64_t tile_bytes() const { return int64_t{side} * side * 3; }
};

/// What a picture becomes: its tiles, and the positions that it takes of the language model's sequence.
struct VisionSize {
  int64_t tiles = 1;
  int64_t positions = 0;
};

/// Of a picture of these pixels (after orientation, 1 at least), one of `num_pictures` of its conversation.
/// kTiles: positions are those of LLaVA-NeXT with spatial_unpad: the whole picture, the patches of its tiles
/// that show it, and one for each line of patches.
[[nodiscard]] VisionSize vision_size(const VisionView& view, int32_t width, int32_t height,
                                     int64_t num_pictures);

/// Decodes a picture to its tiles: uint8 [tiles, side, side, 3] into `slot`, as many as `size` says. Returns
/// why it is refused, or nothing; `slot` is then undefined.
[[nodiscard]] std::string vision_tiles(const VisionView& view, std::span<const std::byte> bytes,
                                       int64_t num_pictures, const DecodeOptions& options,
                                       std::span<std::byte> slot);

}  // namespace chiliad::image
