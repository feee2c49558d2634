#include "chiliad/image/detail/resample.h"

#include <gtest/gtest.h>

#define HWY_WANT_AVX3_DL  // as resample.cpp
#include <hwy/targets.h>

#include <algorithm>

#include "chiliad/base/rng.h"
#include "chiliad/image/resize.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image::detail {
namespace {

/// Straight sums over the weights, without pairs and digits.
std::vector<uint8_t> resample_slowly(const std::vector<uint8_t>& row, const AxisWeights& axis) {
  std::vector<uint8_t> made;
  for (int32_t i = 0; i < axis.num_outputs(); ++i) {
    for (int c = 0; c < 3; ++c) {
      int64_t sum = 1 << (kWeightBits - 1);
      for (int32_t k = 0; k < axis.count[i]; ++k)
        sum += int64_t{axis.of(i)[k]} * row[static_cast<size_t>(3 * (axis.first[i] + k) + c)];
      made.push_back(static_cast<uint8_t>(std::clamp<int64_t>(sum >> kWeightBits, 0, 255)));
    }
  }
  return made;
}

std::vector<uint8_t> random_bytes(size_t count, uint64_t seed) {
  Rng rng(seed);
  std::vector<uint8_t> bytes(count);
  for (uint8_t& byte : bytes)
    byte = static_cast<uint8_t>(rng.below(2) == 0 ? rng.below(256) : 255 * rng.below(2));
  return bytes;
}

/// Every instruction set of this machine, and none.
class ResampleTest : public testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

TEST_P(ResampleTest, RowsEqualStraightSums) {
  for (const int32_t width : {1, 2, 3, 5, 7, 31, 200}) {
    for (const int32_t outputs : {1, 3, 4, 5, 50, 301}) {
      const auto row = random_bytes(static_cast<size_t>(3 * width), static_cast<uint64_t>(width));
      HostArray picture(DType::kU8, Shape{1, width, 3});
      std::copy(row.begin(), row.end(), picture.as<uint8_t>().begin());
      const HostArray found = resize(picture, outputs, 1, Filter::kLanczos);
      const AxisWeights axis =
          axis_weights({width, 0.0F, static_cast<float>(width), outputs, 0, outputs}, Filter::kLanczos);
      const auto expected = width == outputs ? row : resample_slowly(row, axis);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), found.as<uint8_t>().begin()))
          << width << " to " << outputs;
    }
  }
}

TEST_P(ResampleTest, ColumnsEqualStraightSums) {
  for (const int32_t height : {1, 2, 3, 5, 31, 200}) {
    for (const int32_t outputs : {1, 3, 50, 301}) {
      const auto column = random_bytes(static_cast<size_t>(3 * height), static_cast<uint64_t>(height));
      constexpr int64_t kWidth = 37;
      HostArray picture(DType::kU8, Shape{height, kWidth, 3});
      for (int64_t i = 0; i < height * kWidth; ++i)
        std::copy_n(column.begin() + i / kWidth * 3, 3, picture.as<uint8_t>().begin() + 3 * i);
      const HostArray found = resize(picture, kWidth, outputs, Filter::kBicubic);
      const AxisWeights axis =
          axis_weights({height, 0.0F, static_cast<float>(height), outputs, 0, outputs}, Filter::kBicubic);
      const auto expected = height == outputs ? column : resample_slowly(column, axis);
      for (int64_t i = 0; i < outputs * kWidth; ++i) {
        ASSERT_TRUE(std::equal(expected.begin() + i / kWidth * 3, expected.begin() + i / kWidth * 3 + 3,
                               found.as<uint8_t>().begin() + 3 * i))
            << height << " to " << outputs << " at " << i;
      }
    }
  }
}

TEST_P(ResampleTest, AHugeReductionDoesNotOverflow) {
  HostArray picture(DType::kU8, Shape{1, 70'000, 3});
  std::fill(picture.bytes().begin(), picture.bytes().end(), std::byte{255});
  const HostArray found = resize(picture, 1, 1, Filter::kBox);
  EXPECT_GE(found.as<uint8_t>()[0], 254);
}

INSTANTIATE_TEST_SUITE_P(All, ResampleTest, testing::ValuesIn(hwy::SupportedAndGeneratedTargets()),
                         [](const auto& level) { return std::string(hwy::TargetName(level.param)); });

}  // namespace
}  // namespace chiliad::image::detail
