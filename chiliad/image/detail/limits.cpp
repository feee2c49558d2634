#include "chiliad/image/detail/limits.h"

#include <fmt/core.h>

namespace chiliad::image::detail {

std::string size_refusal(int64_t width, int64_t height, const Limits& limits) {
  if (width <= 0 || height <= 0) return fmt::format("header: no pixels: {} x {}", width, height);
  if (width > limits.max_pixels / height) {
    return fmt::format("header: too many pixels: expected at most {}, got {} x {}", limits.max_pixels, width,
                       height);
  }
  if (width * height > limits.max_bytes / 3) {
    return fmt::format("header: too large: expected at most {} bytes of RGB8, got {} x {} pixels",
                       limits.max_bytes, width, height);
  }
  return {};
}

}  // namespace chiliad::image::detail
