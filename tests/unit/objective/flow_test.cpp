#include "chiliad/objective/flow.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "chiliad/objective/flow_schedule.h"

namespace chiliad::objective {
namespace {

std::vector<double> draws(const spec::ObjectiveOptions& options, uint64_t count) {
  std::vector<double> times;
  for (uint64_t key = 0; key < count; ++key) times.push_back(static_cast<double>(draw_time(options, key)));
  std::sort(times.begin(), times.end());
  return times;
}

double below(const std::vector<double>& sorted, double t) {
  return static_cast<double>(std::lower_bound(sorted.begin(), sorted.end(), t) - sorted.begin()) /
         static_cast<double>(sorted.size());
}

/// Largest distance of the empirical distribution that 20000 draws exceed once in 1e6: sqrt(ln(2e6) / (2 n)).
constexpr double kLimit = 0.019;

TEST(DrawTimeTest, LogitNormalHasItsDistribution) {
  spec::ObjectiveOptions options;
  options.times_mean = 0.3;
  options.times_std = 0.8;
  const auto times = draws(options, 20000);
  for (double t = 0.05; t < 1.0; t += 0.05) {
    const double z = (std::log(t / (1 - t)) - 0.3) / 0.8;
    EXPECT_NEAR(below(times, t), 0.5 * std::erfc(-z / std::sqrt(2.0)), kLimit) << t;
  }
}

TEST(DrawTimeTest, ShiftMovesTheUniform) {
  spec::ObjectiveOptions options;
  options.times = "uniform";
  options.shift = 3.0;
  const auto times = draws(options, 20000);
  for (double u = 0.05; u < 1.0; u += 0.05) EXPECT_NEAR(below(times, shift_time(u, 3.0)), u, kLimit) << u;
}

TEST(DrawNoiseTest, RowsDependOnTheirKeyAlone) {
  const std::vector<uint64_t> together = {5, 6, 7};
  const std::vector<uint64_t> alone = {6};
  EXPECT_TRUE(at::equal(draw_noise(together, 33)[1], draw_noise(alone, 33)[0]));
}

TEST(DrawCaptionDropoutTest, HasItsFraction) {
  spec::ObjectiveOptions options;
  options.caption_dropout = 0.1;
  int dropped = 0;
  for (uint64_t key = 0; key < 20000; ++key) dropped += draw_caption_dropout(options, key) ? 1 : 0;
  EXPECT_NEAR(dropped / 20000.0, 0.1, 0.0106);  // 5 standard deviations
}

TEST(PatchifyTest, UnpatchifyIsItsInverse) {
  const at::Tensor pixels =
      (at::arange(2 * 8 * 12 * 3, at::kLong) * 7 % 256).to(at::kByte).view({2, 8, 12, 3});
  const at::Tensor back = unpatchify(patchify(pixels, 4), 2, 3, 4);
  EXPECT_TRUE(at::equal(back.add(1.0).mul(127.5).round().to(at::kByte), pixels));
}

TEST(PatchifyTest, PatchesAreRowMajorWithChannelsLast) {
  at::Tensor pixels = at::zeros({1, 4, 4, 3}, at::kByte);
  pixels[0][1][2][1] = 255;  // row 1, column 2, green: patch 1, its row 1, column 0
  const at::Tensor patches = patchify(pixels, 2);
  EXPECT_EQ(patches[0][1][2 * 3 + 1].item<float>(), 1.0F);
  EXPECT_EQ((patches == 1.0).sum().item<int64_t>(), 1);
}

TEST(ItemLossesTest, SampleErrorsBecomeVelocityErrors) {
  spec::ObjectiveOptions options;
  options.prediction = "sample";
  options.loss = "velocity";
  options.min_time = 0.1;
  const at::Tensor x0 = at::zeros({2, 1, 4}, at::kFloat);
  const at::Tensor t = at::arange(2, at::kFloat) * 0.45 + 0.05;  // 0.05 and 0.5
  const at::Tensor losses = item_losses(options, x0 + 1.0, x0, x0 + 3.0, t);
  EXPECT_NEAR(losses[0].item<double>(), 1.0 / 0.01, 1e-3);  // floored
  EXPECT_NEAR(losses[1].item<double>(), 1.0 / 0.25, 1e-5);
}

TEST(ToVelocityTest, PerfectSampleGivesTheTarget) {
  spec::ObjectiveOptions options;
  options.prediction = "sample";
  const at::Tensor x0 = at::full({1, 1, 3}, 0.25, at::kFloat);
  const at::Tensor noise = at::full({1, 1, 3}, -1.5, at::kFloat);
  const at::Tensor x_t = interpolate(x0, noise, at::full({1}, 0.4, at::kFloat));
  EXPECT_TRUE(at::allclose(to_velocity(options, x0, x_t, 0.4), velocity_target(x0, noise), 1e-6, 1e-6));
}

TEST(FlowScheduleTest, TableIndexStaysInTheTable) {
  EXPECT_EQ(table_index(1.0F, 1000), 999);
  EXPECT_EQ(table_index(0.0F, 1000), 0);
  EXPECT_EQ(table_index(-0.1F, 1000), 0);  // the mode density can leave [0, 1] by rounding
}

TEST(FlowScheduleTest, SigmasFallFromOneToZero) {
  for (const double shift : {1.0, 3.0, 0.5}) {
    const auto sigmas = sampler_sigmas(even_sigmas(7), shift);
    ASSERT_EQ(sigmas.size(), 8U);
    EXPECT_EQ(sigmas.front(), 1.0);
    EXPECT_EQ(sigmas.back(), 0.0);
    EXPECT_TRUE(std::is_sorted(sigmas.rbegin(), sigmas.rend()));
  }
}

}  // namespace
}  // namespace chiliad::objective
