#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "chiliad/base/host_array.h"
#include "tests/support/safetensors_lite.h"

namespace chiliad::test {

/// How far two pictures are apart, over all samples.
struct Distance {
  int max_abs = 0;
  double mean_abs = 0.0;
};

/// Both of the same number of bytes.
[[nodiscard]] Distance distance(std::span<const std::byte> a, std::span<const std::byte> b);

/// Empty if `picture` has the shape of `expected` and is at most `max_abs` away in every sample, else what
/// differs.
[[nodiscard]] std::string difference(const HostArray& picture, const LiteTensor& expected, int max_abs = 0);

}  // namespace chiliad::test
