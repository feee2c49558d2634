#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/optim/ema.h"
#include "chiliad/optim/learning_rate.h"

namespace chiliad::optim {
namespace {

TEST(LearningRateTest, LinearFallsOverTheLastPart) {
  spec::OptimizerOptions options;
  options.lr = 1.0;
  options.decay = "linear";
  options.decay_fraction = 0.5;
  EXPECT_EQ(learning_rate(options, 49, 100), 1.0);
  EXPECT_EQ(learning_rate(options, 75, 100), 0.5);
  EXPECT_EQ(learning_rate(options, 100, 100), 0.0);
}

TEST(LearningRateTest, NamesAnUnknownDecay) {
  spec::OptimizerOptions options;
  options.decay = "step";
  try {
    (void)learning_rate(options, 1, 10);
    FAIL() << "no exception";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("got 'step'"), std::string::npos);
  }
}

TEST(ClipFactorTest, LeavesSmallNormsAlone) {
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_NEAR(clip_factor(4.0, 1.0), 0.25, 1e-6);
  EXPECT_EQ(clip_factor(1e30, 0.0), 1.0);
}

TEST(EmaDecayTest, RisesToItsFinalValue) {
  const EmaOptions options{.decay = 0.9};
  EXPECT_EQ(ema_decay(options, 1), 0.0);
  EXPECT_EQ(ema_decay(options, 2), 2.0 / 11.0);
  EXPECT_EQ(ema_decay(options, 100000), 0.9);
}

TEST(EmaDecayTest, WithoutWarmupItIsConstant) {
  EXPECT_EQ(ema_decay({.decay = 0.9, .warmup = EmaWarmup::kNone}, 1), 0.9);
}

TEST(EmaDecayTest, FollowsTheRunFile) {
  spec::OptimizerOptions run;
  run.ema = 0.999;
  EXPECT_EQ(ema_decay(ema_options(run), 11), 11.0 / 20.0);  // rational
  run.ema_warmup = "none";
  EXPECT_EQ(ema_decay(ema_options(run), 1), 0.999);
  run.ema_warmup = "power";
  run.ema_power = 0.5;
  run.ema_inv_gamma = 2.0;
  run.ema_after = 3;
  run.ema_min = 0.1;
  EXPECT_EQ(ema_decay(ema_options(run), 4), 0.0);
  EXPECT_DOUBLE_EQ(ema_decay(ema_options(run), 5), 1.0 - 1.0 / std::sqrt(1.5));
  EXPECT_EQ(ema_decay(ema_options(run), 10), 0.5);
  run.ema_min = 0.75;
  EXPECT_EQ(ema_decay(ema_options(run), 5), 0.75);
}

}  // namespace
}  // namespace chiliad::optim
