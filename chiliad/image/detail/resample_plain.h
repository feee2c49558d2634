#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "chiliad/image/detail/resample.h"

namespace chiliad::image::detail {

// What resample.cpp does by vectors, one sample after another: for machines without them.
namespace plain {

constexpr int64_t kPairStride = int64_t{kBlockRows} * kPairSamples;

inline int32_t product(const int16_t* samples, int32_t pair) {
  return samples[0] * static_cast<int16_t>(pair & 0xffff) + samples[1] * static_cast<int16_t>(pair >> 16);
}

inline uint8_t to_level(uint32_t high, uint32_t low) {
  const auto sum = static_cast<int32_t>((high << kLowBits) + low + (1U << (kWeightBits - 1)));
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

inline void put_in_block(const uint8_t* const* rows, int num_rows, int32_t num_pixels, int16_t* block) {
  for (int row = 0; row < num_rows; ++row) {
    for (int32_t x = 0; x < num_pixels; ++x) {
      int16_t* to = block + x / 2 * kPairStride + row * kPairSamples + x % 2;
      for (int c = 0; c < 3; ++c) to[2 * c] = rows[row][3 * int64_t{x} + c];
    }
  }
}

inline void resample_block(const int16_t* block, const TapPairs& pairs, uint8_t* out) {
  const int32_t* high = pairs.high.data();
  const int32_t* low = pairs.low.data();
  for (const int32_t first : pairs.first) {
    const int16_t* from = block + int64_t{first} / 2 * kPairStride;
    for (int64_t i = 0; i < kPairStride / 2; ++i) {
      uint32_t high_sum = 0;
      uint32_t low_sum = 0;
      for (int32_t p = 0; p < pairs.num_pairs; ++p) {
        high_sum += static_cast<uint32_t>(product(from + p * kPairStride + 2 * i, high[p]));
        low_sum += static_cast<uint32_t>(product(from + p * kPairStride + 2 * i, low[p]));
      }
      *out++ = to_level(high_sum, low_sum);
    }
    high += pairs.num_pairs;
    low += pairs.num_pairs;
  }
}

inline void take_rows(const uint8_t* block, int32_t num_pixels, int first_row, uint8_t* const rows[4]) {
  for (int r = 0; r < 4; ++r) {
    if (rows[r] == nullptr) continue;
    for (int32_t x = 0; x < num_pixels; ++x)
      std::memcpy(rows[r] + 3 * int64_t{x}, block + (int64_t{x} * kBlockRows + first_row + r) * 4, 3);
  }
}

inline void resample_down(const uint8_t* const* rows, int64_t row_bytes, const int32_t* high,
                          const int32_t* low, int32_t num_pairs, uint8_t* out) {
  for (int64_t x = 0; x < row_bytes; ++x) {
    uint32_t high_sum = 0;
    uint32_t low_sum = 0;
    for (int32_t p = 0; p < num_pairs; ++p) {
      const int16_t samples[2] = {rows[2 * p][x], rows[2 * p + 1][x]};
      high_sum += static_cast<uint32_t>(product(samples, high[p]));
      low_sum += static_cast<uint32_t>(product(samples, low[p]));
    }
    out[x] = to_level(high_sum, low_sum);
  }
}

}  // namespace plain
}  // namespace chiliad::image::detail
