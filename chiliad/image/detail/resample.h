#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/image/resize.h"

namespace chiliad::image::detail {

/// Bits after the point in a weight: 8 bits of sample, 2 bits of headroom for the overshoot of negative
/// lobes.
constexpr int kWeightBits = 32 - 8 - 2;
/// A weight is high * 2^kLowBits + low, so that both fit the 16-bit multiplications of vectors; sums are
/// exact.
constexpr int kLowBits = 11;

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
  /// One past the last source sample that any output needs; the first is first.front().
  [[nodiscard]] int32_t end() const { return first.back() + count.back(); }
};

/// One axis: `outputs` samples of [begin, end) of `source` samples, of which those from first_output on are
/// wanted.
struct Axis {
  int32_t source = 0;
  float begin = 0.0F;
  float end = 0.0F;
  int32_t outputs = 0;
  int32_t first_output = 0;
  int32_t num_outputs = 0;
};

/// Antialiasing weights. Single precision at the interface and double inside, as Pillow has it, since the
/// last bit of a weight depends on it.
[[nodiscard]] AxisWeights axis_weights(const Axis& axis, Filter filter);

/// The weights of an axis by pairs of neighbouring taps, each half in 16 bits: high and low digits.
struct TapPairs {
  int32_t num_pairs = 0;       ///< for each output; unused ones are 0
  std::vector<int32_t> first;  ///< [outputs] first sample; even where aligned
  std::vector<int32_t> high;   ///< [outputs, num_pairs] digits of the first tap (low half) and the second
  std::vector<int32_t> low;    ///< [outputs, num_pairs]
};
/// `aligned`: pairs begin at even samples.
[[nodiscard]] TapPairs tap_pairs(const AxisWeights& axis, bool aligned);

// Rows that go through the pass across together.
constexpr int kBlockRows = 8;
// 16-bit samples of a pair of pixels of one row in a block: R R G G B B 0 0.
constexpr int kPairSamples = 8;

/// Puts rows of `num_pixels` RGB pixels into a block: [pairs][kBlockRows][kPairSamples].
void put_in_block(const uint8_t* const* rows, int num_rows, int32_t num_pixels, int16_t* block);
/// The pass across: pixels of all rows of a block, [outputs][kBlockRows][4] bytes (R G B and one unused).
void resample_block(const int16_t* block, const TapPairs& pairs, uint8_t* out);
/// Row `row` of what resample_block gave as RGB pixels, for four rows from `first_row` on.
void take_rows(const uint8_t* block, int32_t num_pixels, int first_row, uint8_t* const rows[4]);

/// The pass down: one output row of `row_bytes` samples from the 2 * num_pairs rows that `rows` names.
void resample_down(const uint8_t* const* rows, int64_t row_bytes, const int32_t* high, const int32_t* low,
                   int32_t num_pairs, uint8_t* out);

}  // namespace chiliad::image::detail
