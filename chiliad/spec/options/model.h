#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `model`. One family so far: `pixel_dit`, a diffusion transformer on pixels (M2).
struct ModelOptions {
  std::string family = "pixel_dit";
  int64_t width = 256;  ///< D, divisible by heads; D / heads even
  int64_t depth = 4;    ///< transformer blocks
  int64_t heads = 4;
  int64_t patch = 8;  ///< pixels a side
  int64_t mlp_ratio = 4;
  int64_t text_layers = 1;        ///< encoder layers over the caption tokens
  int64_t text_max_tokens = 128;  ///< captions are cut here (never inside a UTF-8 character)
};

}  // namespace chiliad::spec
