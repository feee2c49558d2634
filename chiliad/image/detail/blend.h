#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace chiliad::image::detail {

/// Pillow's alpha_composite over an opaque colour: 7 extra bits, then a division by 255 by shifts.
[[nodiscard]] constexpr uint8_t blend(uint32_t front, uint32_t back, uint32_t alpha) {
  const uint32_t sum = front * alpha + back * (255 - alpha) + 128;
  return static_cast<uint8_t>((sum * 128 + (sum >> 1U)) >> 15U);
}

/// RGBA pixels over a colour.
inline void blend_row(const uint8_t* rgba, int32_t count, const std::array<uint8_t, 3>& background,
                      uint8_t* rgb) {
  for (int32_t i = 0; i < count; ++i, rgba += 4, rgb += 3) {
    for (size_t c = 0; c < 3; ++c) rgb[c] = blend(rgba[c], background[c], rgba[3]);
  }
}

}  // namespace chiliad::image::detail
