#include "tests/support/picture_compare.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>

namespace chiliad::test {

Distance distance(std::span<const std::byte> a, std::span<const std::byte> b) {
  CHILIAD_CHECK_EQ(a.size(), b.size());
  Distance result;
  double sum = 0.0;
  for (size_t i = 0; i < a.size(); ++i) {
    const int apart = std::abs(static_cast<int>(a[i]) - static_cast<int>(b[i]));
    result.max_abs = std::max(result.max_abs, apart);
    sum += apart;
  }
  result.mean_abs = a.empty() ? 0.0 : sum / static_cast<double>(a.size());
  return result;
}

std::string difference(const HostArray& picture, const LiteTensor& expected, int max_abs) {
  if (picture.shape() != Shape(expected.shape)) {
    return fmt::format("shape: expected {}, got {}", Shape(expected.shape).to_string(),
                       picture.shape().to_string());
  }
  const Distance apart = distance(picture.bytes(), expected.bytes);
  if (apart.max_abs <= max_abs) return {};
  return fmt::format("pixels: expected at most {} apart, got {} (mean {:.3f})", max_abs, apart.max_abs,
                     apart.mean_abs);
}

}  // namespace chiliad::test
