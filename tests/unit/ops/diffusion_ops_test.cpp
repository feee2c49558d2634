// Operators of the diffusion transformers against plain arithmetic.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/ops/attention.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/backward.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/ops/joint_attention.h"
#include "chiliad/ops/patches.h"

namespace chiliad::ops {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency).view(sizes);
}

TEST(JointAttentionTest, IsOneAttentionOverBothStreams) {
  const Stream first{wave({2, 3, 8}, 0.7), wave({2, 3, 8}, 1.1), wave({2, 3, 8}, 1.9)};
  const Stream second{wave({2, 4, 8}, 0.3), wave({2, 4, 8}, 2.1), wave({2, 4, 8}, 0.9)};
  const auto [a, b] = joint_attention(first, second, 2);
  const at::Tensor keys = at::cat({second.k, first.k}, 1);  // the order of keys does not matter
  const at::Tensor values = at::cat({second.v, first.v}, 1);
  EXPECT_TRUE(at::allclose(a, attention(first.q, keys, values, 2, {}), 1e-10, 1e-12));
  EXPECT_TRUE(at::allclose(b, attention(second.q, keys, values, 2, {}), 1e-10, 1e-12));
}

TEST(NormHeadsTest, EveryHeadHasItsOwnScale) {
  const at::Tensor x = wave({2, 3, 8}, 0.7);
  const at::Tensor weight = wave({4}, 1.3);
  const at::Tensor y = norm_heads(x, weight, 1e-6);
  for (const int64_t first : {0, 4}) {
    const at::Tensor head = x.narrow(2, first, 4);
    const at::Tensor expected = head / (head.square().mean({-1}, true) + 1e-6).sqrt() * weight;
    EXPECT_TRUE(at::allclose(y.narrow(2, first, 4), expected, 1e-10, 1e-12)) << first;
  }
}

TEST(AxisRotaryTest, EachAxisTurnsItsOwnValues) {
  const at::Tensor positions = at::tensor(std::vector<float>{0, 3, 5}).view({1, 3});
  const auto [cos, sin] = axis_rotary_tables(positions, {2, 4, 2}, 100.0);
  const std::vector<double> angles{0.0, 3.0, 3.0 / 10.0, 5.0};  // 100^(-2/4) = 1/10
  for (size_t i = 0; i < angles.size(); ++i) {
    EXPECT_FLOAT_EQ(cos[0][static_cast<int64_t>(i)].item<float>(), static_cast<float>(std::cos(angles[i])));
    EXPECT_FLOAT_EQ(sin[0][static_cast<int64_t>(i)].item<float>(), static_cast<float>(std::sin(angles[i])));
  }
}

TEST(RotatePairsTest, NeighboursTurnTogether) {
  const at::Tensor x = at::tensor(std::vector<double>{1, 2, 3, 4}).view({1, 1, 4});
  const double angle = 0.5;
  const at::Tensor cos = at::full({1, 1}, std::cos(angle), at::kDouble);
  const at::Tensor sin = at::full({1, 1}, std::sin(angle), at::kDouble);
  const at::Tensor y = rotate_pairs(x, cos, sin).flatten();  // two heads of one pair
  EXPECT_NEAR(y[0].item<double>(), std::cos(angle) - 2 * std::sin(angle), 1e-12);
  EXPECT_NEAR(y[1].item<double>(), 2 * std::cos(angle) + std::sin(angle), 1e-12);
  EXPECT_NEAR(y[2].item<double>(), 3 * std::cos(angle) - 4 * std::sin(angle), 1e-12);
  EXPECT_NEAR(y[3].item<double>(), 4 * std::cos(angle) + 3 * std::sin(angle), 1e-12);
}

TEST(RotatePairsTest, GradientIsTheTurnBack) {
  at::Tensor x = wave({2, 3, 8}, 0.7).set_requires_grad(true);
  const at::Tensor angles = wave({3, 2}, 0.4);
  const at::Tensor gradient = wave({2, 3, 8}, 1.7);
  backward({rotate_pairs(x, at::cos(angles), at::sin(angles))}, {gradient});
  const at::Tensor back = rotate_pairs(gradient, at::cos(angles), -at::sin(angles));
  EXPECT_TRUE(at::allclose(x.grad(), back, 1e-12, 1e-12));
}

TEST(PatchesTest, ValuesAreInTheOrderOfAConvolution) {
  const at::Tensor image = wave({2, 3, 4, 6}, 0.7);
  const at::Tensor weight = wave({5, 3, 2, 2}, 1.1);
  const at::Tensor expected = at::conv2d(image, weight, {}, 2).flatten(2).transpose(1, 2);
  EXPECT_TRUE(at::allclose(at::linear(patches_of(image, 2), weight.flatten(1)), expected, 1e-10, 1e-12));
}

TEST(PatchesTest, ChannelFirstIsTheWayBack) {
  const at::Tensor image = wave({2, 3, 4, 6}, 0.7);
  EXPECT_TRUE(image_of(patches_of(image, 2), 2, 3, 2, PatchOrder::kChannelFirst).equal(image));
}

TEST(PatchesTest, ChannelLastHasTheChannelAsLastFactor) {
  const at::Tensor patches = at::arange(2 * 2 * 3, at::kDouble).view({1, 1, 12});
  const at::Tensor image = image_of(patches, 1, 1, 2, PatchOrder::kChannelLast);
  ASSERT_EQ(image.sizes().vec(), (std::vector<int64_t>{1, 3, 2, 2}));
  EXPECT_EQ(image[0][2][1][0].item<double>(), (1 * 2 + 0) * 3 + 2);
}

TEST(GridPositionsTest, StretchedGridHasTheExtentOfItsBase) {
  const at::Tensor fine = stretched_grid_positions(8, 4, 16, 4, 1.0);
  const at::Tensor coarse = stretched_grid_positions(4, 4, 16, 4, 1.0);
  // Row 2 of 8 lies where row 1 of 4 does.
  EXPECT_TRUE(at::allclose(fine.view({8, 4, 16})[2], coarse.view({4, 4, 16})[1], 1e-6, 1e-6));
}

TEST(GridPositionsTest, ScaleDividesPlaces) {
  const at::Tensor wide = stretched_grid_positions(4, 4, 16, 4, 2.0).view({4, 4, 16});
  const at::Tensor plain = stretched_grid_positions(4, 4, 16, 4, 1.0).view({4, 4, 16});
  EXPECT_TRUE(at::allclose(wide[2][0], plain[1][0], 1e-6, 1e-6));
}

TEST(GridPositionsTest, FirstHalfIsTheColumn) {
  const at::Tensor grid = stretched_grid_positions(3, 5, 8, 4, 1.0).view({3, 5, 8});
  EXPECT_TRUE(grid[0][3].narrow(0, 0, 4).equal(grid[2][3].narrow(0, 0, 4)));
  EXPECT_TRUE(grid[1][0].narrow(0, 4, 4).equal(grid[1][4].narrow(0, 4, 4)));
}

TEST(TimeFeaturesTest, ShiftMakesTheLastFrequencyReachTheEnd) {
  const at::Tensor t = at::tensor(std::vector<float>{10.0F});
  const at::Tensor features = time_features(t, 8, 1);
  EXPECT_NEAR(features[0][7].item<double>(), std::sin(10.0 * 1e-4), 1e-8);
}

}  // namespace
}  // namespace chiliad::ops
