#pragma once

#include <cstdint>

#include "chiliad/base/host_array.h"
#include "chiliad/image/fit.h"

namespace chiliad::image {

enum class Filter : uint8_t { kBox, kBilinear, kHamming, kBicubic, kLanczos };

/// A part of the source in source pixels; may be fractional.
struct SourceBox {
  double left = 0.0;
  double top = 0.0;
  double right = 0.0;
  double bottom = 0.0;
};

/// Antialiased resize of uint8 [H, W, 3], equal to Pillow's Image.resize(size, filter, box) to the bit (its
/// fixed-point arithmetic). Throws InternalError for empty sizes or a box outside of the picture.
/// Thread-safe.
[[nodiscard]] HostArray resize(const HostArray& picture, int32_t width, int32_t height, Filter filter);
[[nodiscard]] HostArray resize(const HostArray& picture, int32_t width, int32_t height, Filter filter,
                               const SourceBox& box);
/// The part that `fit` keeps of the whole picture resized; only that part is computed.
[[nodiscard]] HostArray resize(const HostArray& picture, const Fit& fit, Filter filter);

/// [top : top + height, left : left + width] of uint8 [H, W, 3].
[[nodiscard]] HostArray crop(const HostArray& picture, int32_t left, int32_t top, int32_t width,
                             int32_t height);

/// Mirrors left and right.
[[nodiscard]] HostArray flip_horizontal(const HostArray& picture);

/// `resize` by cover_fit.
[[nodiscard]] HostArray cover(const HostArray& picture, int32_t width, int32_t height, Filter filter,
                              double crop_x = 0.5, double crop_y = 0.5);

}  // namespace chiliad::image
