#include "chiliad/objective/diffusion_objective.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/objective/ddpm.h"

namespace chiliad::objective {
namespace {

const std::vector<uint64_t> kKeys{3, 5, 8, 13};

spec::ObjectiveOptions flow_options() {
  spec::ObjectiveOptions options;
  options.prediction = "velocity";
  return options;
}

spec::ObjectiveOptions ddpm_options() {
  spec::ObjectiveOptions options;
  options.kind = "ddpm";
  options.prediction = "noise";
  return options;
}

TEST(DiffusionObjectiveTest, TimesDependOnTheirKeysAlone) {
  const DiffusionObjective flow(flow_options(), false);
  const auto all = flow.draw_times(kKeys, 16);
  const auto one = flow.draw_times(std::span(kKeys).subspan(2, 1), 16);
  EXPECT_EQ(all.flow[2].item<float>(), one.flow[0].item<float>());
  EXPECT_NE(all.flow[2].item<float>(), all.flow[1].item<float>());
}

TEST(DiffusionObjectiveTest, DynamicShiftMovesTimesOfLargePicturesTowardsNoise) {
  auto options = flow_options();
  options.dynamic_shift = true;
  const DiffusionObjective flow(options, false);
  EXPECT_NEAR(flow.shift(256), std::exp(0.5), 1e-12);
  EXPECT_NEAR(flow.shift(4096), std::exp(1.15), 1e-12);
  const auto small = flow.draw_times(kKeys, 256);
  const auto large = flow.draw_times(kKeys, 4096);
  EXPECT_TRUE(large.flow.gt(small.flow).all().item<bool>());
}

TEST(DiffusionObjectiveTest, FlowWalksAlongAStraightLine) {
  const DiffusionObjective flow(flow_options(), false);
  const at::Tensor x0 = at::randn({4, 2, 3, 3});
  const at::Tensor noise = at::randn({4, 2, 3, 3});
  const auto times = flow.draw_times(kKeys, 9);
  const at::Tensor t = times.flow.view({4, 1, 1, 1});
  EXPECT_TRUE(at::allclose(flow.noisy(x0, noise, times), (1.0 - t) * x0 + t * noise, 1e-6, 1e-6));
  EXPECT_TRUE(flow.losses(noise - x0, x0, noise, times).eq(0.0).all().item<bool>());
  EXPECT_TRUE(at::allclose(flow.losses(noise - x0 + 2.0, x0, noise, times), at::full({4}, 4.0), 1e-5));
  EXPECT_TRUE(at::allclose(flow.network_time(times), times.flow * 1000.0));
}

TEST(DiffusionObjectiveTest, DiscreteTimesAreWholeAndInTheTable) {
  auto options = ddpm_options();
  options.train_steps = 3;
  const DiffusionObjective ddpm(options, false);
  std::vector<uint64_t> keys(200);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = 1000 + i;
  const at::Tensor steps = ddpm.draw_times(keys, 0).steps;
  for (int64_t t = 0; t < 3; ++t) EXPECT_GT(steps.eq(t).sum().item<int64_t>(), 40) << t;
  EXPECT_EQ(steps.min().item<int64_t>(), 0);
  EXPECT_EQ(steps.max().item<int64_t>(), 2);
}

TEST(DiffusionObjectiveTest, MinSnrWeighsNearlyCleanTimesLess) {
  auto options = ddpm_options();
  const DiffusionObjective plain(options, false);
  options.min_snr_gamma = 5.0;
  const DiffusionObjective capped(options, false);
  Times times;
  times.steps = at::tensor({int64_t{0}, int64_t{999}}, at::kLong);
  const at::Tensor x0 = at::randn({2, 1, 4, 4});
  const at::Tensor noise = at::randn({2, 1, 4, 4});
  const at::Tensor guess = noise + 1.0;
  const at::Tensor before = plain.losses(guess, x0, noise, times);
  const at::Tensor after = capped.losses(guess, x0, noise, times);
  EXPECT_LT(after[0].item<float>(), 0.1 * before[0].item<float>());
  EXPECT_NEAR(after[1].item<float>(), before[1].item<float>(), 1e-5);
}

TEST(DiffusionObjectiveTest, LearnedVarianceAddsItsBoundAndLeavesTheMeanAlone) {
  const DiffusionObjective ddpm(ddpm_options(), true);
  Times times;
  times.steps = at::tensor({int64_t{0}, int64_t{500}}, at::kLong);
  const at::Tensor x0 = at::rand({2, 2, 4, 4}) * 2.0 - 1.0;
  const at::Tensor noise = at::randn({2, 2, 4, 4});
  at::Tensor output = at::cat({noise, at::zeros_like(noise)}, 1).set_requires_grad(true);
  const at::Tensor losses = ddpm.losses(output, x0, noise, times);
  EXPECT_GT(losses.min().item<double>(), 0.0);  // the squared error alone is 0
  losses.sum().backward();
  EXPECT_EQ(output.grad().narrow(1, 0, 2).abs().max().item<float>(), 0.0F);
  EXPECT_GT(output.grad().narrow(1, 2, 2).abs().max().item<float>(), 0.0F);
}

TEST(DiffusionObjectiveTest, NoiseAtNoSignalIsRefused) {
  auto options = ddpm_options();
  options.zero_terminal_snr = true;
  EXPECT_ANY_THROW(DiffusionObjective(options, false));
}

}  // namespace
}  // namespace chiliad::objective
