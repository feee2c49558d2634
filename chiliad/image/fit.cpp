#include "chiliad/image/fit.h"

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"

namespace chiliad::image {

Fit cover_fit(int32_t source_width, int32_t source_height, int32_t width, int32_t height, double crop_x,
              double crop_y) {
  CHILIAD_CHECK(source_width > 0 && source_height > 0 && width > 0 && height > 0,
                "empty size {} x {} of {} x {}", width, height, source_width, source_height);
  CHILIAD_CHECK(crop_x >= 0 && crop_x <= 1 && crop_y >= 0 && crop_y <= 1, "crop place ({}, {})", crop_x,
                crop_y);
  const bool wider = static_cast<double>(source_width) / source_height > static_cast<double>(width) / height;
  const double scale =
      wider ? static_cast<double>(height) / source_height : static_cast<double>(width) / source_width;
  Fit fit;
  // Rounding may leave a side one short where width / scale is inexact.
  fit.full_width = std::max(width, static_cast<int32_t>(source_width * scale + 0.5));
  fit.full_height = std::max(height, static_cast<int32_t>(source_height * scale + 0.5));
  fit.left = static_cast<int32_t>(std::floor((fit.full_width - width) * crop_x));
  fit.top = static_cast<int32_t>(std::floor((fit.full_height - height) * crop_y));
  fit.width = width;
  fit.height = height;
  return fit;
}

Fit shortest_edge_fit(int32_t source_width, int32_t source_height, int32_t edge, int32_t side) {
  CHILIAD_CHECK(source_width > 0 && source_height > 0 && side > 0 && edge >= side,
                "edge {} and side {} of {} x {}", edge, side, source_width, source_height);
  const int64_t shorter = std::min(source_width, source_height);
  Fit fit;
  fit.full_width = static_cast<int32_t>(int64_t{edge} * source_width / shorter);
  fit.full_height = static_cast<int32_t>(int64_t{edge} * source_height / shorter);
  fit.left = static_cast<int32_t>(std::nearbyint((fit.full_width - side) / 2.0));
  fit.top = static_cast<int32_t>(std::nearbyint((fit.full_height - side) / 2.0));
  fit.width = fit.height = side;
  return fit;
}

Fit stretch_fit(int32_t width, int32_t height) {
  CHILIAD_CHECK(width > 0 && height > 0, "empty size {} x {}", width, height);
  return {width, height, 0, 0, width, height};
}

}  // namespace chiliad::image
