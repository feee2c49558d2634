#include "chiliad/objective/validation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"

namespace chiliad::objective {
namespace {

std::vector<uint64_t> keys_of(int count) {
  std::vector<uint64_t> keys;
  for (int i = 0; i < count; ++i) keys.push_back(mix64(static_cast<uint64_t>(i)));
  return keys;
}

/// A loss that depends on all that a draw says; its sum in another order has other bits.
double measure(const ValidationDraw& draw) {
  const at::Tensor noise = validation_noise(std::span(&draw, 1), 3);
  const float time = validation_time({}, draw.quantile);
  return std::exp(3.0 * noise.sum().item<double>()) * time;
}

/// The validation of a run with `ranks` ranks: each makes the draws itself and measures its share, in batches
/// whose order `step` changes.
ValidationLosses validate(const std::vector<uint64_t>& keys, size_t ranks, size_t step) {
  const ValidationOptions options{.seed = 5, .draws_per_item = 2};
  ValidationLosses all;
  for (size_t rank = ranks; rank-- > 0;) {
    std::vector<uint64_t> order = keys;
    std::rotate(order.begin(), order.begin() + static_cast<int64_t>(step), order.end());
    const auto draws = make_validation_draws(order, options);
    ValidationLosses own;
    for (size_t i = rank; i < order.size(); i += ranks) {
      for (const auto& draw : draws.at(order[i])) own.add(draw, measure(draw));
    }
    all.merge(own);
  }
  return all;
}

TEST(ValidationTest, LossHasTheSameBitsAtAnyRankCountAndOrder) {
  const auto keys = keys_of(23);
  const auto wanted = validate(keys, 1, 0);
  for (const size_t ranks : {1U, 2U, 3U, 8U}) {
    const auto actual = validate(keys, ranks, 4 * ranks % 23);
    EXPECT_EQ(actual.size(), 46);
    EXPECT_EQ(actual.mean(), wanted.mean()) << ranks;
    EXPECT_EQ(actual.means_by_time(), wanted.means_by_time()) << ranks;
  }
}

TEST(ValidationTest, NoiseOfADrawDoesNotDependOnItsBatch) {
  const auto draws = make_validation_draws(keys_of(4), {.seed = 1});
  std::vector<ValidationDraw> batch;
  for (const auto& [key, own] : draws) batch.push_back(own[0]);
  const at::Tensor together = validation_noise(batch, 7);
  std::reverse(batch.begin(), batch.end());
  EXPECT_TRUE(together.flip(0).equal(validation_noise(batch, 7)));
}

TEST(ValidationTest, EveryStratumHasOneDraw) {
  constexpr int kItems = 20;
  constexpr int kDraws = 3;
  std::vector<int> found(kItems * kDraws, 0);
  for (const auto& [key, own] :
       make_validation_draws(keys_of(kItems), {.seed = 2, .draws_per_item = kDraws})) {
    for (const auto& draw : own) ++found[static_cast<size_t>(draw.quantile * kItems * kDraws)];
  }
  EXPECT_EQ(found, std::vector<int>(kItems * kDraws, 1));
}

TEST(ValidationTest, AnItemsDrawsAreSpreadOverTheTimes) {
  for (const auto& [key, own] : make_validation_draws(keys_of(6), {.seed = 2, .draws_per_item = 4})) {
    for (size_t repeat = 0; repeat < own.size(); ++repeat)
      EXPECT_EQ(static_cast<size_t>(own[repeat].quantile * 4), repeat);
  }
}

TEST(ValidationTest, AnotherSeedGivesOtherDraws) {
  const auto keys = keys_of(3);
  const auto one = make_validation_draws(keys, {.seed = 1}).at(keys[0])[0];
  const auto other = make_validation_draws(keys, {.seed = 2}).at(keys[0])[0];
  EXPECT_NE(one.quantile, other.quantile);
  EXPECT_NE(one.noise_seed, other.noise_seed);
}

TEST(ValidationTest, TimesAreQuantilesOfTheTrainingDensity) {
  spec::ObjectiveOptions options;
  options.times = "logit_normal";
  EXPECT_NEAR(validation_time(options, 0.5), 0.5F, 1e-6);
  // One standard deviation: the logistic function of 1.
  EXPECT_NEAR(validation_time(options, 0.8413447460685429), 0.7310585786F, 1e-6);
}

TEST(ValidationTest, WholeTimesCoverTheTable) {
  EXPECT_EQ(validation_timestep(1e-9, 1000), 0);
  EXPECT_EQ(validation_timestep(1.0 - 1e-9, 1000), 999);
}

TEST(ValidationTest, RefusesAKeyTwice) {
  const std::vector<uint64_t> keys = {7, 8, 7};
  try {
    (void)make_validation_draws(keys, {});
    FAIL() << "accepted";
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("got 0x7 twice"), std::string::npos) << error.what();
  }
}

TEST(ValidationTest, RefusesASecondLossOfADraw) {
  const ValidationDraw draw{.item_key = 1};
  ValidationLosses losses;
  losses.add(draw, 1.0);
  EXPECT_THROW(losses.add(draw, 1.0), InternalError);
}

}  // namespace
}  // namespace chiliad::objective
