#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/model/build_model.h"

namespace chiliad::model {
namespace {

at::Tensor initial(const std::string& name, uint64_t seed, spec::Init init = spec::Init::kXavierUniform,
                   int64_t rows = 64) {
  at::Tensor out = at::full({rows, 32}, -7.0, at::kFloat);
  initialise({name, Shape{rows, 32}, init}, seed, out);
  return out;
}

TEST(InitialiseTest, DependsOnSeedAndNameOnly) {
  EXPECT_TRUE(at::equal(initial("a.weight", 1), initial("a.weight", 1)));
  EXPECT_FALSE(at::equal(initial("a.weight", 1), initial("a.weight", 2)));
  EXPECT_FALSE(at::equal(initial("a.weight", 1), initial("b.weight", 1)));
}

TEST(InitialiseTest, XavierStaysInItsLimits) {
  const at::Tensor values = initial("a.weight", 1);
  const double limit = std::sqrt(6.0 / (64 + 32));
  EXPECT_LE(values.abs().max().item<double>(), limit * (1 + 1e-6));
  EXPECT_NEAR(values.std().item<double>(), limit / std::sqrt(3.0), 0.02 * limit);
}

TEST(InitialiseTest, NormalHasItsDeviation) {
  EXPECT_NEAR(initial("a", 1, spec::Init::kNormal002, 512).std().item<double>(), 0.02, 0.001);
  EXPECT_NEAR(initial("a", 1, spec::Init::kNormalUnit, 512).std().item<double>(), 1.0, 0.05);
}

TEST(InitialiseTest, ZeroAndOneFillEverything) {
  EXPECT_TRUE(at::equal(initial("a", 1, spec::Init::kZero), at::zeros({64, 32}, at::kFloat)));
  EXPECT_TRUE(at::equal(initial("a", 1, spec::Init::kOne), at::ones({64, 32}, at::kFloat)));
}

TEST(MakeInputTest, TokenWeightsAreTheMeanOverTheCaption) {
  at::Tensor tokens = at::zeros({2, 4}, at::kLong);
  tokens[0].fill_(9);
  tokens[1].narrow(0, 0, 2).fill_(9);
  spec::ModelOptions options;
  options.width = 16;
  const auto carry =
      make_input(options, at::zeros({2, 6, 12}, at::kFloat), at::zeros({2}, at::kFloat), tokens, 2, 3);
  const at::Tensor& weights = carry.get("token_weights");
  EXPECT_EQ(weights[0][0][3].item<float>(), 0.25F);
  EXPECT_EQ(weights[1][0][1].item<float>(), 0.5F);
  EXPECT_EQ(weights[1][0][2].item<float>(), 0.0F);
}

}  // namespace
}  // namespace chiliad::model
