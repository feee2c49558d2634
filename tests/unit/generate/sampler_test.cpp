#include "chiliad/generate/sampler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/generate/ddim.h"
#include "chiliad/generate/dpm_solver.h"
#include "chiliad/generate/guidance.h"
#include "chiliad/objective/learned_variance.h"

namespace chiliad::generate {
namespace {

using objective::make_noise_schedule;
using objective::Prediction;

TEST(DdimTest, EtaOneIsThePosterior) {
  const auto schedule = make_noise_schedule({});
  const auto tables = objective::make_posterior_tables(schedule);
  const DdimSampler sampler(schedule, {.steps = 1000, .prediction = Prediction::kSample, .eta = 1.0});
  const at::Tensor x = at::full({1, 1}, 0.7, at::kDouble);
  const at::Tensor x0 = at::full({1, 1}, -0.3, at::kDouble);
  SamplerState state;
  state.noise_keys = {11};
  for (const size_t t : {1U, 500U, 999U}) {
    const auto i = static_cast<int64_t>(999 - t);
    const double mean = tables.mean_x0[t] * -0.3 + tables.mean_xt[t] * 0.7;
    const double noise = step_noise(state.noise_keys, i, x).item<double>();
    const double wanted = mean + std::exp(0.5 * tables.log_variance_clipped[t]) * noise;
    EXPECT_NEAR(sampler.step(x0, x, i, state).item<double>(), wanted, 1e-12) << t;
  }
}

TEST(DdimTest, NoiseOfARowDoesNotDependOnItsBatch) {
  const at::Tensor both = step_noise({3, 4}, 2, at::zeros({2, 5}));
  EXPECT_TRUE(both[1].equal(step_noise({4}, 2, at::zeros({1, 5}))[0]));
  EXPECT_FALSE(both[1].equal(step_noise({4}, 3, at::zeros({1, 5}))[0]));
}

TEST(DdimTest, RefusesTimesPastTheTable) {
  EXPECT_THROW(DdimSampler(make_noise_schedule({}), {.steps = 1000, .steps_offset = 1}), InvalidInput);
  EXPECT_THROW(DdimSampler(make_noise_schedule({}), {.steps = 0}), InvalidInput);
  EXPECT_THROW(DdimSampler(make_noise_schedule({}), {.eta = 1.5}), InvalidInput);
}

TEST(DdimTest, RefusesPredictedNoiseAtSnrZero) {
  const auto schedule = make_noise_schedule({.zero_terminal_snr = true});
  EXPECT_THROW(DdimSampler(schedule, {.prediction = Prediction::kNoise}), InvalidInput);
}

/// Samples of N(0, 4) have the network known in closed form, and a solver without error maps x at the
/// noisiest time to x times the ratio of standard deviations.
double gaussian_error(const SolverPath& path) {
  constexpr double kVariance = 4.0;
  const DpmSolver solver(path, {.prediction = SolverPrediction::kSample});
  const auto deviation = [&](size_t i) {
    return std::sqrt(path.signal[i] * path.signal[i] * kVariance + path.noise[i] * path.noise[i]);
  };
  at::Tensor x = at::full({1, 1}, deviation(0), at::kDouble);
  SamplerState state;
  const size_t steps = path.times.size();
  for (size_t i = 0; i < steps; ++i) {
    const at::Tensor x0 = x * (path.signal[i] * kVariance / (deviation(i) * deviation(i)));
    x = solver.step(x0, x, static_cast<int64_t>(i), state);
  }
  return std::abs(x.item<double>() - deviation(steps));
}

TEST(DpmSolverTest, ConvergesAtSecondOrder) {
  const auto schedule = make_noise_schedule({});
  const auto error = [&](int steps) {
    return gaussian_error(discrete_path(
        schedule, {.steps = steps, .sigmas = SigmaSpacing::kKarras, .final_sigma = FinalSigma::kSmallest}));
  };
  EXPECT_NEAR(error(40) / error(80), 4.0, 1.0);
}

TEST(DpmSolverTest, FirstStepOfFlowIsFinite) {
  const DpmSolver solver(flow_path({.steps = 3, .shift = 3.0}), {.prediction = SolverPrediction::kFlow});
  SamplerState state;
  EXPECT_TRUE(at::isfinite(solver.step(at::ones({1, 2}), at::ones({1, 2}), 0, state)).all().item<bool>());
}

TEST(DpmSolverTest, LandsOnTheSample) {
  const DpmSolver solver(discrete_path(make_noise_schedule({}), {.steps = 20}),
                         {.prediction = SolverPrediction::kSample});
  SamplerState state;
  at::Tensor x = at::full({1, 1}, 3.0, at::kDouble);
  for (int64_t i = 0; i < 20; ++i) x = solver.step(at::full({1, 1}, 0.25 * i, at::kDouble), x, i, state);
  EXPECT_NEAR(x.item<double>(), 0.25 * 19, 1e-12);
}

TEST(DpmSolverTest, RefusesAStepOutOfOrder) {
  const DpmSolver solver(discrete_path(make_noise_schedule({}), {.steps = 20}), {});
  SamplerState state;
  EXPECT_THROW((void)solver.step(at::ones({1, 1}), at::ones({1, 1}), 3, state), InternalError);
}

class GuidanceTest : public testing::Test {
 protected:
  at::Tensor with_ = at::full({2, 4, 3}, 5.0);
  at::Tensor without_ = at::full({2, 4, 3}, 2.0);
};

TEST_F(GuidanceTest, BothFormsAreOneLineWithOtherScales) {
  EXPECT_EQ(guide({.scale = 3.0}, with_, without_)[0][0][0].item<float>(), 11.0F);
  EXPECT_EQ(
      guide({.scale = 2.0, .form = GuidanceForm::kFromConditional}, with_, without_)[0][0][0].item<float>(),
      11.0F);
}

TEST_F(GuidanceTest, ScaleOfNoGuidanceAsksOnlyOnce) {
  EXPECT_FALSE(needs_unconditional({.scale = 1.0}));
  EXPECT_FALSE(needs_unconditional({.scale = 0.0, .form = GuidanceForm::kFromConditional}));
  EXPECT_TRUE(needs_unconditional({.scale = 0.0}));
}

TEST_F(GuidanceTest, ChannelsBeyondTheFirstStayConditional) {
  const at::Tensor guided = guide({.scale = 3.0, .channels = 3}, with_, without_);
  EXPECT_TRUE(guided.narrow(1, 0, 3).eq(11.0).all().item<bool>());
  EXPECT_TRUE(guided.narrow(1, 3, 1).eq(5.0).all().item<bool>());
}

TEST_F(GuidanceTest, VarianceIsTheSecondHalfOfTheChannels) {
  const at::Tensor output = at::arange(4).view({1, 4, 1});
  EXPECT_TRUE(without_variance(output).flatten().equal(at::arange(2)));
}

}  // namespace
}  // namespace chiliad::generate
