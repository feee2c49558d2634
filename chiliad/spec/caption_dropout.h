#pragma once

#include <cstdint>

#include "chiliad/base/rng.h"

namespace chiliad::spec {

/// Whether the item of this key sees the null caption in place of its own (classifier-free guidance).
[[nodiscard]] inline bool drops_caption(double probability, uint64_t draw_key) {
  Rng rng({draw_key, static_cast<uint64_t>(Draw::kDropout)});
  return rng.uniform_double() < probability;
}

}  // namespace chiliad::spec
