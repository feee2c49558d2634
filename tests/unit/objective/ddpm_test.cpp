#include "chiliad/objective/ddpm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "chiliad/objective/learned_variance.h"
#include "chiliad/ops/backward.h"

namespace chiliad::objective {
namespace {

at::Tensor normal(at::IntArrayRef shape, uint64_t seed) {
  at::Tensor values = at::empty(shape, at::kFloat);
  Rng({seed}).fill_normal({values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  return values.to(at::kDouble);
}

at::Tensor times(std::initializer_list<int64_t> values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kLong);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<int64_t>());
  return tensor;
}

class DdpmTest : public testing::Test {
 protected:
  NoiseSchedule schedule_ = make_noise_schedule({});
  at::Tensor timesteps_ = times({0, 300, 999});
  at::Tensor x0_ = normal({3, 2, 4, 5}, 1);
  at::Tensor noise_ = normal({3, 2, 4, 5}, 2);
};

TEST_F(DdpmTest, EveryPredictionGivesBothEndsBack) {
  const at::Tensor x_t = add_noise(schedule_, x0_, noise_, timesteps_);
  for (const auto prediction : {Prediction::kNoise, Prediction::kVelocity, Prediction::kSample}) {
    const at::Tensor right = ddpm_target(schedule_, prediction, x0_, noise_, timesteps_);
    const auto ends = split_prediction(schedule_, prediction, right, x_t, timesteps_);
    EXPECT_LT((ends.x0 - x0_).abs().max().item<double>(), 1e-10) << static_cast<int>(prediction);
    EXPECT_LT((ends.noise - noise_).abs().max().item<double>(), 1e-10) << static_cast<int>(prediction);
  }
}

TEST_F(DdpmTest, MinSnrLossesOfOneErrorAgreeInAllSpaces) {
  const at::Tensor x_t = add_noise(schedule_, x0_, noise_, timesteps_);
  const auto guess =
      split_prediction(schedule_, Prediction::kSample, x0_ + 0.1 * normal({3, 2, 4, 5}, 3), x_t, timesteps_);
  const auto losses = [&](Prediction prediction) {
    const at::Tensor predicted = ddpm_target(schedule_, prediction, guess.x0, guess.noise, timesteps_);
    return ddpm_losses(schedule_, prediction, predicted, x0_, noise_, timesteps_, 5.0);
  };
  const at::Tensor wanted = losses(Prediction::kSample);
  EXPECT_LT((losses(Prediction::kNoise) / wanted - 1.0).abs().max().item<double>(), 1e-9);
  EXPECT_LT((losses(Prediction::kVelocity) / wanted - 1.0).abs().max().item<double>(), 1e-9);
}

TEST_F(DdpmTest, RefusesATimePastTheTable) {
  EXPECT_THROW((void)add_noise(schedule_, x0_, noise_, times({0, 1, 1000})), InternalError);
}

TEST_F(DdpmTest, TheBoundLeavesTheMeanAlone) {
  at::Tensor output = normal({3, 4, 4, 5}, 4);
  output.set_requires_grad(true);
  const auto tables = make_posterior_tables(schedule_);
  const at::Tensor vb =
      learned_variance_losses(schedule_, tables, output, x0_.clamp(-1, 1), noise_, timesteps_).vb.sum();
  ops::backward({vb});
  EXPECT_EQ(output.grad().narrow(1, 0, 2).abs().max().item<double>(), 0.0);
  EXPECT_GT(output.grad().narrow(1, 2, 2).abs().max().item<double>(), 0.0);
}

}  // namespace
}  // namespace chiliad::objective
