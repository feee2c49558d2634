#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/plan.h"

namespace chiliad::stepplan {

std::vector<Bucket> make_buckets(const spec::DataOptions& options) {
  const int64_t step = options.bucket_step;
  if (step <= 0 || options.bucket_min <= 0 || options.resolution <= 0) {
    throw InvalidInput(
        "data", fmt::format("resolution, bucket_step, bucket_min: expected positive sides, got {}, {}, {}",
                            options.resolution, step, options.bucket_min));
  }
  const int64_t low = (options.bucket_min + step - 1) / step * step;
  const int64_t high = options.bucket_max / step * step;
  const double area = static_cast<double>(options.resolution) * static_cast<double>(options.resolution);
  std::vector<Bucket> buckets;
  for (int64_t width = low; width <= high; width += step) {
    const double exact = area / static_cast<double>(width * step);
    const int64_t height = static_cast<int64_t>(std::floor(exact + 0.5)) * step;
    if (height < low || height > high) continue;
    const auto w = static_cast<int32_t>(width);
    const auto h = static_cast<int32_t>(height);
    buckets.push_back({w, h});
    buckets.push_back({h, w});
  }
  std::sort(buckets.begin(), buckets.end());
  buckets.erase(std::unique(buckets.begin(), buckets.end()), buckets.end());
  if (buckets.empty()) {
    throw InvalidInput(
        "data", fmt::format("buckets: no multiple of bucket_step {} within bucket_min {} and bucket_max {} "
                            "gives about {}^2 pixels. Lower bucket_step or widen the range",
                            step, options.bucket_min, options.bucket_max, options.resolution));
  }
  return buckets;
}

int32_t assign_bucket(const std::vector<Bucket>& buckets, int64_t width, int64_t height) {
  CHILIAD_CHECK(!buckets.empty() && width > 0 && height > 0);
  const double ratio = std::log(static_cast<double>(width) / static_cast<double>(height));
  int32_t best = 0;
  double best_error = INFINITY;
  for (size_t i = 0; i < buckets.size(); ++i) {
    const double error =
        std::abs(ratio - std::log(static_cast<double>(buckets[i].width) / buckets[i].height));
    if (error >= best_error - 1e-12) continue;  // rounding must not decide a tie
    best = static_cast<int32_t>(i);
    best_error = error;
  }
  return best;
}

}  // namespace chiliad::stepplan
