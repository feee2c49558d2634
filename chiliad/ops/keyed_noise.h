#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "chiliad/base/rng.h"

namespace chiliad::ops {

/// Standard normal values [B, count] on the host; row i is a function of draw_keys[i] and `purpose` alone.
[[nodiscard]] at::Tensor keyed_noise(std::span<const uint64_t> draw_keys, Draw purpose, int64_t count);

}  // namespace chiliad::ops
