#include "chiliad/image/detail/resample.h"

#include <algorithm>
#include <cstring>

namespace chiliad::image::detail {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr int kBlock =
    64;  // a constant trip count, which the compiler turns into vector code without a remainder loop

using Lanes = int32_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(4)));

[[gnu::always_inline]] inline uint8_t to_sample(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

[[gnu::always_inline]] inline void row_kernel(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
  for (int32_t i = 0; i < axis.num_outputs(); ++i, to += 3) {
    const int32_t* weights = axis.of(i);
    const uint8_t* pixel = from + 3 * int64_t{axis.first[i]};
    Lanes sum = {kHalf, kHalf, kHalf, kHalf};  // R, G, B and a lane that is dropped
    for (int32_t k = 0; k < axis.count[i]; ++k, pixel += 3) {
      Bytes samples;
      std::memcpy(&samples, pixel, sizeof(samples));
      sum += weights[k] * __builtin_convertvector(samples, Lanes);
    }
    to[0] = to_sample(sum[0]);
    to[1] = to_sample(sum[1]);
    to[2] = to_sample(sum[2]);
  }
}

[[gnu::always_inline]] inline void column_kernel(const uint8_t* from, int64_t stride, uint8_t* to,
                                                 int64_t row_bytes, const AxisWeights& axis, int32_t output) {
  const int32_t* weights = axis.of(output);
  const int32_t count = axis.count[output];
  from += stride * axis.first[output];
  int64_t x = 0;
  for (; x + kBlock <= row_bytes; x += kBlock) {
    int32_t sums[kBlock];
    for (int j = 0; j < kBlock; ++j) sums[j] = kHalf;
    for (int32_t k = 0; k < count; ++k) {
      const uint8_t* row = from + stride * k + x;
      const int32_t weight = weights[k];
      for (int j = 0; j < kBlock; ++j) sums[j] += weight * row[j];
    }
    for (int j = 0; j < kBlock; ++j) to[x + j] = to_sample(sums[j]);
  }
  for (; x < row_bytes; ++x) {
    int32_t sum = kHalf;
    for (int32_t k = 0; k < count; ++k) sum += weights[k] * from[stride * k + x];
    to[x] = to_sample(sum);
  }
}

#if defined(__x86_64__)
// The same integers by wider instructions; chosen at run time, so that one binary serves all machines.
[[gnu::target("avx2")]] void row_avx2(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
  row_kernel(from, to, axis);
}
[[gnu::target("avx2")]] void column_avx2(const uint8_t* from, int64_t stride, uint8_t* to, int64_t row_bytes,
                                         const AxisWeights& axis, int32_t output) {
  column_kernel(from, stride, to, row_bytes, axis, output);
}
bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") != 0;
  return found;
}
#endif

}  // namespace

void resample_row(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
#if defined(__x86_64__)
  if (has_avx2()) return row_avx2(from, to, axis);
#endif
  row_kernel(from, to, axis);
}

void resample_column(const uint8_t* from, int64_t stride, uint8_t* to, int64_t row_bytes,
                     const AxisWeights& axis, int32_t output) {
#if defined(__x86_64__)
  if (has_avx2()) return column_avx2(from, stride, to, row_bytes, axis, output);
#endif
  column_kernel(from, stride, to, row_bytes, axis, output);
}

}  // namespace chiliad::image::detail
