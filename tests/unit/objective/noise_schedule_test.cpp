#include "chiliad/objective/noise_schedule.h"

#include <gtest/gtest.h>

#include <string>

#include "chiliad/base/error.h"

namespace chiliad::objective {
namespace {

/// Of fp32 tables elsewhere, which hold 7 digits.
constexpr double kFloatTable = 2e-4;

double ratio(double actual, double expected) {
  return actual / expected;
}

TEST(NoiseScheduleTest, SquaredCosineMatchesDiffusers) {
  const auto schedule = make_noise_schedule({.schedule = BetaSchedule::kSquaredCosine});
  EXPECT_NEAR(ratio(schedule.betas[0], 4.128422369831242e-05), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.betas[500], 0.003155691549181938), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.alphas_cumprod[500], 0.4922850430011749), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.alphas_cumprod[998], 2.428766265438753e-06), 1.0, kFloatTable);
  EXPECT_EQ(schedule.betas[999], 0.999);
}

const NoiseScheduleOptions kZeroSnr{.schedule = BetaSchedule::kScaledLinear,
                                    .beta_start = 0.00085,
                                    .beta_end = 0.012,
                                    .zero_terminal_snr = true};

TEST(NoiseScheduleTest, ZeroTerminalSnrMatchesDiffusers) {
  const auto schedule = make_noise_schedule(kZeroSnr);
  EXPECT_NEAR(ratio(schedule.betas[0], 0.0008500218391418457), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.betas[998], 0.7511317729949951), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.alphas_cumprod[500], 0.24101854860782623), 1.0, kFloatTable);
  EXPECT_NEAR(ratio(schedule.alphas_cumprod[998], 1.9679629303936963e-07), 1.0, kFloatTable);
}

TEST(NoiseScheduleTest, ZeroTerminalSnrEndsInNoiseAlone) {
  const auto schedule = make_noise_schedule(kZeroSnr);
  EXPECT_EQ(schedule.signal[999], 0.0);
  EXPECT_EQ(schedule.snr(999), 0.0);
}

TEST(NoiseScheduleTest, RefusesPredictedNoiseAtSnrZero) {
  const auto schedule = make_noise_schedule(kZeroSnr);
  EXPECT_NO_THROW(check_prediction(schedule, Prediction::kVelocity, "run"));
  try {
    check_prediction(schedule, Prediction::kNoise, "run");
    FAIL() << "accepted";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("expected velocity or sample, got noise"), std::string::npos)
        << error.what();
  }
}

TEST(NoiseScheduleTest, RefusesBetasOutsideTheUnitRange) {
  EXPECT_THROW((void)make_noise_schedule({.beta_start = 0.0}), InvalidInput);
  EXPECT_THROW((void)make_noise_schedule({.beta_start = 0.1, .beta_end = 0.02}), InvalidInput);
  EXPECT_THROW((void)make_noise_schedule({.train_steps = 1}), InvalidInput);
}

/// An error e of x0 is a noise error of e a / s and a v error of e / s at the same x_t.
TEST(NoiseScheduleTest, MinSnrWeightsAreOneLossInThreeSpaces) {
  const auto schedule = make_noise_schedule({});
  for (const int64_t t : {0, 100, 400, 999}) {
    const double snr = schedule.snr(t);
    const double sample = min_snr_weight(schedule, Prediction::kSample, t, 5.0);
    EXPECT_NEAR(ratio(min_snr_weight(schedule, Prediction::kNoise, t, 5.0) * snr, sample), 1.0, 1e-12) << t;
    EXPECT_NEAR(ratio(min_snr_weight(schedule, Prediction::kVelocity, t, 5.0) * (snr + 1.0), sample), 1.0,
                1e-12)
        << t;
  }
}

TEST(NoiseScheduleTest, MinSnrWeightOfNoiseIsOneAtSnrZero) {
  const auto schedule = make_noise_schedule(kZeroSnr);
  EXPECT_EQ(min_snr_weight(schedule, Prediction::kNoise, 999, 5.0), 1.0);
}

}  // namespace
}  // namespace chiliad::objective
