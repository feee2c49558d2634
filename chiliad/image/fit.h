#pragma once

#include <cstdint>

namespace chiliad::image {

/// How a picture becomes one of width x height pixels: the whole of it is resized to full_width x
/// full_height, of which the part at (left, top) is kept.
struct Fit {
  int32_t full_width = 0;
  int32_t full_height = 0;
  int32_t left = 0;
  int32_t top = 0;
  int32_t width = 0;
  int32_t height = 0;
  bool operator==(const Fit&) const = default;
};

/// Scales so that the picture covers width x height (sides round half up) and cuts the part that crop_x,
/// crop_y in [0, 1] place (0.5: centre; floor): the contract of a bucket.
[[nodiscard]] Fit cover_fit(int32_t source_width, int32_t source_height, int32_t width, int32_t height,
                            double crop_x = 0.5, double crop_y = 0.5);

/// The shorter side becomes `edge` and the longer one int(edge * longer / shorter); the centre of side x side
/// is cut as torchvision does (halves round to even): CLIP's and torchvision's contract. edge >= side.
[[nodiscard]] Fit shortest_edge_fit(int32_t source_width, int32_t source_height, int32_t edge, int32_t side);

/// The picture is stretched to width x height; nothing is cut.
[[nodiscard]] Fit stretch_fit(int32_t width, int32_t height);

}  // namespace chiliad::image
