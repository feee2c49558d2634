#include <gtest/gtest.h>

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

}  // namespace
}  // namespace chiliad::optim
