#include "chiliad/image/detail/resample.h"

#include <algorithm>

namespace chiliad::image::detail {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);

uint8_t to_sample(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

void row_plain(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
  for (int32_t i = 0; i < axis.num_outputs(); ++i, to += 3) {
    const int32_t* weights = axis.of(i);
    const uint8_t* pixel = from + 3 * int64_t{axis.first[i]};
    int32_t red = kHalf;
    int32_t green = kHalf;
    int32_t blue = kHalf;
    for (int32_t k = 0; k < axis.count[i]; ++k, pixel += 3) {
      red += weights[k] * pixel[0];
      green += weights[k] * pixel[1];
      blue += weights[k] * pixel[2];
    }
    to[0] = to_sample(red);
    to[1] = to_sample(green);
    to[2] = to_sample(blue);
  }
}

void column_plain(const uint8_t* from, int64_t stride, uint8_t* to, int64_t row_bytes,
                  const AxisWeights& axis, int32_t output) {
  const int32_t* weights = axis.of(output);
  from += stride * axis.first[output];
  for (int64_t x = 0; x < row_bytes; ++x) {
    int32_t sum = kHalf;
    for (int32_t k = 0; k < axis.count[output]; ++k) sum += weights[k] * from[stride * k + x];
    to[x] = to_sample(sum);
  }
}

}  // namespace

void resample_row(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
  if (has_avx2()) return row_avx2(from, to, axis);
  row_plain(from, to, axis);
}

void resample_column(const uint8_t* from, int64_t stride, uint8_t* to, int64_t row_bytes,
                     const AxisWeights& axis, int32_t output) {
  const int64_t done = has_avx2() ? column_avx2(from, stride, to, row_bytes, axis, output) : 0;
  column_plain(from + done, stride, to + done, row_bytes - done, axis, output);
}

}  // namespace chiliad::image::detail
