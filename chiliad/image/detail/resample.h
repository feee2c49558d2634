#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/image/resize.h"

namespace chiliad::image::detail {

/// Bits after the point in a weight: 8 bits of sample, 2 bits of headroom for the overshoot of negative
/// lobes.
constexpr int kWeightBits = 32 - 8 - 2;

/// Which source samples make each output sample of one axis, and how much of each.
struct AxisWeights {
  int32_t num_taps = 0;          ///< weights stored for an output sample; unused ones are 0
  std::vector<int32_t> first;    ///< [outputs] index of the first source sample
  std::vector<int32_t> count;    ///< [outputs] number of source samples
  std::vector<int32_t> weights;  ///< [outputs, num_taps] fixed point, kWeightBits after the point

  [[nodiscard]] int32_t num_outputs() const { return static_cast<int32_t>(first.size()); }
  [[nodiscard]] const int32_t* of(int32_t output) const {
    return weights.data() + int64_t{output} * num_taps;
  }
};

/// Antialiasing weights of [begin, end) of `source` samples for `outputs` samples. Single precision at the
/// interface and double inside, as Pillow has it, since the last bit of a weight depends on it.
[[nodiscard]] AxisWeights axis_weights(int32_t source, float begin, float end, int32_t outputs,
                                       Filter filter);

/// One row of `source_width` RGB pixels to axis.num_outputs() pixels. `from` needs one readable byte after
/// its end.
void resample_row(const uint8_t* from, uint8_t* to, const AxisWeights& axis);

/// One output row of `row_bytes` samples from the rows that `axis` names for `output`; row r begins at from +
/// r * stride.
void resample_column(const uint8_t* from, int64_t stride, uint8_t* to, int64_t row_bytes,
                     const AxisWeights& axis, int32_t output);

}  // namespace chiliad::image::detail
