#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/ops/attention.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/ops/modulation.h"

namespace chiliad::ops {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency).view(sizes);
}

/// softmax(q k^T / sqrt(d)) v with loops over heads; masked keys weigh nothing.
at::Tensor plain_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                           const at::Tensor& mask) {
  const int64_t size = q.size(2) / heads;
  std::vector<at::Tensor> outs;
  for (int64_t head = 0; head < heads; ++head) {
    const auto part = [&](const at::Tensor& x) { return x.narrow(2, head * size, size); };
    at::Tensor weights =
        (at::bmm(part(q), part(k).transpose(1, 2)) / std::sqrt(static_cast<double>(size))).exp();
    if (mask.defined()) weights = weights * mask.to(at::kDouble).unsqueeze(1);
    outs.push_back(at::bmm(weights / weights.sum(2, true), part(v)));
  }
  return at::cat(outs, 2);
}

TEST(AttentionTest, IsSoftmaxOverAllKeys) {
  const at::Tensor q = wave({2, 3, 8}, 0.7);
  const at::Tensor k = wave({2, 5, 8}, 1.1);
  const at::Tensor v = wave({2, 5, 8}, 1.9);
  EXPECT_TRUE(at::allclose(attention(q, k, v, 2, {}), plain_attention(q, k, v, 2, {}), 1e-10, 1e-12));
}

TEST(AttentionTest, LeavesMaskedKeysOut) {
  const at::Tensor q = wave({2, 3, 8}, 0.7);
  const at::Tensor k = wave({2, 5, 8}, 1.1);
  const at::Tensor v = wave({2, 5, 8}, 1.9);
  const at::Tensor mask = (at::arange(10, at::kLong).view({2, 5}) % 3).ne(1);
  EXPECT_TRUE(at::allclose(attention(q, k, v, 4, mask), plain_attention(q, k, v, 4, mask), 1e-10, 1e-12));
}

TEST(ModulationTest, NormalisesThenScalesAndShifts) {
  const at::Tensor x = wave({2, 3, 16}, 0.9);
  const at::Tensor shift = wave({2, 1, 16}, 0.4);
  const at::Tensor scale = wave({2, 1, 16}, 0.3);
  const at::Tensor mean = x.mean({2}, true);
  const at::Tensor normed = (x - mean) / ((x - mean).square().mean({2}, true) + 1e-6).sqrt();
  EXPECT_TRUE(at::allclose(norm_modulate(x, shift, scale), normed * (1 + scale) + shift, 1e-10, 1e-12));
}

TEST(ModulationTest, GateScalesTheBranchAlone) {
  const at::Tensor x = wave({1, 2, 4}, 0.9);
  const at::Tensor y = wave({1, 2, 4}, 0.5);
  const at::Tensor gate = wave({1, 1, 4}, 0.3);
  EXPECT_TRUE(at::allclose(gated_residual(x, gate, y), x + gate * y, 1e-12, 1e-12));
}

TEST(TimeFeaturesTest, HaveCosinesFirst) {
  const at::Tensor features = time_features(at::full({1}, 500.0, at::kFloat), 8);
  for (int64_t i = 0; i < 4; ++i) {
    const double angle = 500.0 * std::pow(1e4, -static_cast<double>(i) / 4.0);
    EXPECT_NEAR(features[0][i].item<double>(), std::cos(angle), 1e-4) << i;
    EXPECT_NEAR(features[0][i + 4].item<double>(), std::sin(angle), 1e-4) << i;
  }
}

TEST(PositionsTest, CentreOfEveryOddGridIsTheSame) {
  const at::Tensor small = grid_positions(3, 5, 16)[7];
  const at::Tensor large = grid_positions(7, 3, 16)[10];
  EXPECT_TRUE(at::equal(small, large));
}

TEST(PositionsTest, FirstHalfIsTheColumn) {
  const at::Tensor grid = grid_positions(4, 4, 16).view({4, 4, 16});
  EXPECT_TRUE(at::equal(grid[0][2].narrow(0, 0, 8), grid[3][2].narrow(0, 0, 8)));
  EXPECT_FALSE(at::equal(grid[0][2].narrow(0, 8, 8), grid[3][2].narrow(0, 8, 8)));
}

TEST(PositionsTest, AreRowMajor) {
  const at::Tensor grid = grid_positions(2, 3, 16);
  EXPECT_TRUE(at::equal(grid[0].narrow(0, 8, 8), grid[2].narrow(0, 8, 8)));
}

TEST(PositionsTest, LineBeginsAtZero) {
  const at::Tensor line = line_positions(2, 8);
  EXPECT_TRUE(at::equal(line[0], at::cat({at::zeros({4}, at::kFloat), at::ones({4}, at::kFloat)})));
}

}  // namespace
}  // namespace chiliad::ops
