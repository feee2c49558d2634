#pragma once

#include <cstdint>

namespace chiliad::image::detail {

/// The orientation of a file, 1..8; 1 under the planted bug that forgets it.
[[nodiscard]] uint8_t orientation_to_apply(uint8_t orientation);

// Whether the turned picture's left (top) shows what is stored at an end, not at a beginning.
[[nodiscard]] constexpr bool mirrors_x(uint8_t orientation) {
  return orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
}
[[nodiscard]] constexpr bool mirrors_y(uint8_t orientation) {
  return orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
}

}  // namespace chiliad::image::detail
