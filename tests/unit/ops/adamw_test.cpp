#include "chiliad/ops/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "chiliad/base/rng.h"

namespace chiliad::ops {
namespace {

/// Everything one step touches.
struct State {
  std::vector<float> param;
  std::vector<float> grad;
  std::vector<float> exp_avg;
  std::vector<float> exp_avg_sq;
  std::vector<float> average;
};

State random_state(size_t count) {
  Rng rng({11, count});
  State state;
  for (auto* values : {&state.param, &state.grad, &state.exp_avg, &state.exp_avg_sq, &state.average}) {
    values->resize(count);
    rng.fill_normal(*values);
  }
  for (float& value : state.exp_avg_sq) value *= value;
  return state;
}

AdamWStep some_step() {
  AdamWStep step;
  step.lr = 0.01;
  step.weight_decay = 0.1;
  step.step = 3;
  step.grad_scale = 0.7;
  step.ema = 0.9;
  return step;
}

void run(const AdamWStep& step, State& state, bool with_average = true) {
  adamw(step, static_cast<int64_t>(state.param.size()), state.param.data(), state.grad.data(),
        state.exp_avg.data(), state.exp_avg_sq.data(), with_average ? state.average.data() : nullptr);
}

class AdamWSizes : public testing::TestWithParam<size_t> {};

TEST_P(AdamWSizes, VectorsGiveTheBitsOfSingleElements) {
  State together = random_state(GetParam());
  State single = together;
  run(some_step(), together);
  for (size_t i = 0; i < GetParam(); ++i) {
    adamw(some_step(), 1, &single.param[i], &single.grad[i], &single.exp_avg[i], &single.exp_avg_sq[i],
          &single.average[i]);
  }
  EXPECT_EQ(together.param, single.param);
  EXPECT_EQ(together.exp_avg, single.exp_avg);
  EXPECT_EQ(together.exp_avg_sq, single.exp_avg_sq);
  EXPECT_EQ(together.average, single.average);
}

INSTANTIATE_TEST_SUITE_P(Odd, AdamWSizes, testing::Values(1, 3, 7, 8, 9, 15, 17, 31, 33, 63, 65, 257, 1001));

TEST(AdamWTest, MatchesTheFormulaInDouble) {
  const AdamWStep step = some_step();
  const State before = random_state(65);
  State after = before;
  run(step, after);
  for (size_t i = 0; i < before.param.size(); ++i) {
    const double g = static_cast<double>(before.grad[i]) * step.grad_scale;
    const double m = step.beta1 * static_cast<double>(before.exp_avg[i]) + (1 - step.beta1) * g;
    const double v = step.beta2 * static_cast<double>(before.exp_avg_sq[i]) + (1 - step.beta2) * g * g;
    const double corrected = std::sqrt(v / (1 - std::pow(step.beta2, 3)));
    const double p = static_cast<double>(before.param[i]) * (1 - step.lr * step.weight_decay) -
                     step.lr * (m / (1 - std::pow(step.beta1, 3))) / (corrected + step.eps);
    EXPECT_NEAR(after.param[i], p, 1e-6) << i;
    EXPECT_NEAR(after.average[i], step.ema * static_cast<double>(before.average[i]) + (1 - step.ema) * p,
                1e-6)
        << i;
  }
}

TEST(AdamWTest, TheAverageChangesNoBitOfTheRest) {
  State with = random_state(67);
  State without = with;
  run(some_step(), with);
  run(some_step(), without, false);
  EXPECT_EQ(with.param, without.param);
}

TEST(AdamWTest, WithoutAverageItStays) {
  State state = random_state(9);
  const auto before = state.average;
  run(some_step(), state, false);
  EXPECT_EQ(state.average, before);
}

TEST(SumOfSquaresTest, CountsEveryElement) {
  for (size_t count = 0; count < 20; ++count) {
    const std::vector<float> values(count, 3.0F);
    EXPECT_EQ(sum_of_squares(values.data(), static_cast<int64_t>(count)), 9.0 * static_cast<double>(count));
  }
}

TEST(SumOfSquaresTest, AddsInDouble) {
  const std::vector<float> values = {1e10F, 1.0F};
  EXPECT_EQ(sum_of_squares(values.data(), 2), static_cast<double>(1e10F) * static_cast<double>(1e10F) + 1.0);
}

}  // namespace
}  // namespace chiliad::ops
