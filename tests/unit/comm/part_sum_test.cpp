#include "chiliad/comm/part_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace chiliad::comm {
namespace {

/// The upper half of a float: what bf16 holds of it.
uint16_t upper_half(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof(bits));
  return static_cast<uint16_t>(bits >> 16U);
}

TEST(PartSumTest, AddsInRankOrder) {
  // 1e8 + 3 + 3 loses parts of them in fp32, 3 + 3 + 1e8 does not.
  const std::vector<std::vector<float>> parts = {{1e8F, 1.0F}, {3.0F, 3.0F}, {3.0F, 3.0F}, {3.0F, 1e8F}};
  std::vector<const void*> pointers;
  for (const auto& part : parts) pointers.push_back(part.data());
  std::vector<float> sums(2, 5.0F);
  sum_parts(pointers, PartType::kF32, 2, sums.data(), false);
  EXPECT_EQ(sums[0], ((1e8F + 3.0F) + 3.0F) + 3.0F);
  EXPECT_EQ(sums[1], ((1.0F + 3.0F) + 3.0F) + 1e8F);
}

TEST(PartSumTest, AccumulatesFromWhatIsThere) {
  const std::vector<float> one = {3.0F};
  std::vector<float> sums = {1e8F};
  sum_parts(std::vector<const void*>{one.data(), one.data()}, PartType::kF32, 1, sums.data(), true);
  EXPECT_EQ(sums[0], (1e8F + 3.0F) + 3.0F);
}

/// Counts around the block of values that are summed together, one to three parts.
TEST(PartSumTest, CoversEveryElement) {
  for (const int64_t count : {0L, 1L, 7L, 2047L, 2048L, 2049L, 6001L}) {
    for (size_t num_parts = 1; num_parts <= 3; ++num_parts) {
      const std::vector<float> part(static_cast<size_t>(count), 1.5F);
      const std::vector<const void*> parts(num_parts, part.data());
      std::vector<float> sums(static_cast<size_t>(count) + 1, -1.0F);
      sum_parts(parts, PartType::kF32, count, sums.data(), false);
      for (int64_t i = 0; i < count; ++i)
        ASSERT_EQ(sums[static_cast<size_t>(i)], 1.5F * static_cast<float>(num_parts));
      EXPECT_EQ(sums.back(), -1.0F);
    }
  }
}

TEST(PartSumTest, AddsHalfPrecisionInFullPrecision) {
  const std::vector<uint16_t> large = {upper_half(256.0F)};
  const std::vector<uint16_t> small = {upper_half(0.5F)};
  std::vector<float> sums(1);
  sum_parts(std::vector<const void*>{large.data(), small.data(), small.data()}, PartType::kBF16, 1,
            sums.data(), false);
  EXPECT_EQ(sums[0], 257.0F);  // in bf16 each half would be lost
}

}  // namespace
}  // namespace chiliad::comm
