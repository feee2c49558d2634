#include "chiliad/objective/validation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
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

TEST(ValidationTest, DrawsDoNotDependOnTheOrderOfItems) {
  auto keys = keys_of(23);
  const auto wanted = make_validation_draws(keys, {.seed = 5, .draws_per_item = 2});
  std::rotate(keys.begin(), keys.begin() + 7, keys.end());
  for (const auto& [key, draws] : make_validation_draws(keys, {.seed = 5, .draws_per_item = 2})) {
    for (size_t repeat = 0; repeat < draws.size(); ++repeat) {
      EXPECT_EQ(draws[repeat].quantile, wanted.at(key)[repeat].quantile);
      EXPECT_EQ(draws[repeat].draw_key, wanted.at(key)[repeat].draw_key);
    }
  }
}

TEST(ValidationTest, NoTwoDrawsShareANoise) {
  std::set<uint64_t> keys;
  for (const auto& [key, draws] : make_validation_draws(keys_of(50), {.seed = 1, .draws_per_item = 3})) {
    for (const auto& draw : draws) keys.insert(draw.draw_key);
  }
  EXPECT_EQ(keys.size(), 150U);
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
  EXPECT_NE(one.draw_key, other.draw_key);
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

TEST(LossByTimeTest, ItemsFallIntoTheRangeOfTheirTime) {
  LossByTime losses(4);
  losses.add(0.1, 1.0, 1.0);
  losses.add(0.2, 4.0, 2.0);
  losses.add(0.99999, 3.0, 0.0);  // a share of an item that another rank counts
  losses.add(0.8, 1.0, 1.0);
  const auto means = losses.means();
  EXPECT_DOUBLE_EQ(means[0], 5.0 / 3.0);
  EXPECT_TRUE(std::isnan(means[1]));
  EXPECT_DOUBLE_EQ(means[3], 4.0);
}

}  // namespace
}  // namespace chiliad::objective
