#include "chiliad/loader/item_cost.h"

#include "chiliad/image/image.h"

namespace chiliad::loader {
namespace {

constexpr double kSecondsPerByte = 1.0 / 105e6;
constexpr double kSecondsPerPixel = 1.0 / 1.03e9;
constexpr double kProgressiveFactor = 2.8;

}  // namespace

double decode_seconds(const index::Part& picture) {
  const double pixels = static_cast<double>(picture.width) * picture.height;
  const double seconds = static_cast<double>(picture.length) * kSecondsPerByte + pixels * kSecondsPerPixel;
  return (picture.image_flags & image::kProgressive) != 0 ? kProgressiveFactor * seconds : seconds;
}

double start_key(int64_t step, double step_seconds, double cost_seconds) {
  return static_cast<double>(step) * step_seconds - cost_seconds;
}

}  // namespace chiliad::loader
