#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/image/fit.h"
#include "chiliad/image/resize.h"

namespace chiliad::image {

// What vision encoders see of a picture, as the image processors of CLIP, SigLIP, LLaVA and LLaVA-NeXT make
// it (Pillow's pixels). Pictures are uint8 [H, W, 3]; floats are for `normalize` alone, at the very end.

/// The picture in the middle of a square of its longer side, the rest filled with `color`; a side one short
/// goes to the left or the top.
[[nodiscard]] HostArray pad_to_square(const HostArray& picture, const std::array<uint8_t, 3>& color);

/// CLIP's mean colour as LLaVA fills with it.
inline constexpr std::array<uint8_t, 3> kClipMeanColor{122, 116, 104};

/// The shorter side becomes `edge`, the centre of side x side is cut as CLIPImageProcessor does (floor). With
/// the bicubic filter that is CLIP; SigLIP is stretch_fit(side, side). edge >= side.
[[nodiscard]] Fit clip_fit(int32_t source_width, int32_t source_height, int32_t edge, int32_t side);

struct Normalization {
  std::array<double, 3> mean{};
  std::array<double, 3> std{};
};
inline constexpr Normalization kClipNormalization{{0.48145466, 0.4578275, 0.40821073},
                                                  {0.26862954, 0.26130258, 0.27577711}};
inline constexpr Normalization kHalfNormalization{{0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}};

/// (level / 255 - mean) / std: fp32 [3, H, W] of uint8 [H, W, 3].
[[nodiscard]] HostArray normalize(const HostArray& picture, const Normalization& normalization);

struct GridSize {
  int32_t height = 0;
  int32_t width = 0;
  bool operator==(const GridSize&) const = default;
};

/// LLaVA-NeXT's select_best_resolution: of `choices` (pixels), the one that shows most of the picture's
/// pixels and of those the one with the least left over; the first of equals.
[[nodiscard]] GridSize best_resolution(int32_t width, int32_t height, std::span<const GridSize> choices);

/// LLaVA-NeXT's tiles of tile x tile: the whole picture stretched to one, then those of the picture fitted
/// into best_resolution (bicubic, in the middle, black beside it), row by row. choices: multiples of `tile`,
/// one at least.
[[nodiscard]] std::vector<HostArray> any_resolution_tiles(const HostArray& picture, int32_t tile,
                                                          std::span<const GridSize> choices);

}  // namespace chiliad::image
