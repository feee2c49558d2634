#include "chiliad/stepplan/mixer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"

namespace chiliad::stepplan {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

spec::DataSource source(std::string name, double weight) {
  spec::DataSource made;
  made.name = std::move(name);
  made.index = "index";
  made.weight = {{0, weight}};
  return made;
}

spec::DataOptions options_of(std::vector<spec::DataSource> sources) {
  spec::DataOptions options;
  options.sources = std::move(sources);
  return options;
}

Mixer mixer_of(const spec::DataOptions& options, int64_t batch, std::vector<int64_t> available = {},
               std::vector<int64_t> sizes = {}) {
  const size_t count = leaves_of(options.sources).size();
  if (available.empty()) available.assign(count, -1);
  if (sizes.empty()) sizes.assign(count, 100);
  return {SourceShares(options, sizes), {batch, std::move(available)}};
}

TEST(MixerTest, EveryPrefixIsWithinOneItemOfItsShare) {
  Rng rng(7);
  for (int round = 0; round < 40; ++round) {
    std::vector<spec::DataSource> sources;
    const auto count = 2 + rng.below(7);
    for (uint64_t s = 0; s < count; ++s)
      sources.push_back(source("s" + std::to_string(s), std::pow(10.0, -3.0 * rng.uniform_double())));
    const auto options = options_of(sources);
    const auto batch = static_cast<int64_t>(1 + rng.below(40));
    const Mixer mixer = mixer_of(options, batch);
    const auto shares =
        SourceShares(options, std::vector<int64_t>(count, 1)).at(0, std::vector<bool>(count, true));
    std::vector<int64_t> before(count);
    for (int64_t step = 1; step <= 1500; ++step) {
      const auto given = mixer.given_before(step);
      ASSERT_EQ(std::accumulate(given.begin(), given.end(), int64_t{0}), step * batch);
      for (size_t s = 0; s < count; ++s) {
        const double share = static_cast<double>(step * batch) * shares[s];
        ASSERT_LT(std::abs(static_cast<double>(given[s]) - share),
                  1.0 + static_cast<double>(step * batch) * 0x1p-20)
            << "round " << round << " step " << step << " source " << s;
        ASSERT_GE(given[s], before[s]);
      }
      before = given;
    }
  }
}

TEST(MixerTest, StepsAfterAPeriodAreAsCountedOneByOne) {
  const auto options = options_of({source("a", 0.3), source("b", 0.61), source("c", 0.09)});
  const Mixer mixer = mixer_of(options, 4096);  // a period of 256 steps
  const auto period = mixer.given_before(256);
  for (const int64_t step : {0, 1, 17, 255}) {
    auto expected = mixer.given_before(step);
    for (size_t s = 0; s < expected.size(); ++s) expected[s] += 1'000'000 * period[s];
    EXPECT_EQ(mixer.given_before(256'000'000 + step), expected);
  }
  EXPECT_EQ(std::accumulate(period.begin(), period.end(), int64_t{0}), 256 * 4096);
  EXPECT_EQ(period[0], std::llround(0.3 * 1048576));
}

TEST(MixerTest, AnyOrderOfQuestionsHasTheSameAnswers) {
  auto changing = source("a", 1.0);
  changing.weight = {{0, 1.0}, {700, 0.1}, {2000, 3.0}};
  changing.ramp = true;
  const auto options = options_of({changing, source("b", 0.5)});
  const Mixer forward = mixer_of(options, 7);
  std::vector<std::vector<int64_t>> answers;
  for (int64_t step = 0; step < 3000; ++step) answers.push_back(forward.given_before(step));
  const Mixer random = mixer_of(options, 7);
  Rng rng(3);
  for (int i = 0; i < 300; ++i) {
    const auto step = static_cast<int64_t>(rng.below(3000));
    ASSERT_EQ(random.given_before(step), answers[static_cast<size_t>(step)]) << step;
  }
}

TEST(MixerTest, WeightsFollowTheirSchedule) {
  auto early = source("early", 1.0);
  early.weight = {{0, 1.0}, {100, 0.0}};
  auto late = source("late", 0.0);
  late.weight = {{0, 0.0}, {100, 1.0}};
  const Mixer jump = mixer_of(options_of({early, late}), 8);
  EXPECT_EQ(jump.given_before(100), (std::vector<int64_t>{800, 0}));
  EXPECT_EQ(jump.given_before(200), (std::vector<int64_t>{800, 800}));
  early.ramp = late.ramp = true;
  const Mixer ramp = mixer_of(options_of({early, late}), 8);
  EXPECT_NEAR(static_cast<double>(ramp.given_before(100)[0]), 404.0, 2.0);  // the mean of 1 and 0.01
  EXPECT_EQ(ramp.given_before(200)[1] - ramp.given_before(100)[1], 800);
}

TEST(MixerTest, GroupsShareTheirWeight) {
  auto group = source("group", 1.0);
  group.index.clear();
  group.sources = {source("a", 1.0), source("b", 3.0)};
  const auto options = options_of({group, source("c", 1.0)});
  const auto shares = SourceShares(options, {1, 1, 1}).at(0, {true, true, true});
  EXPECT_THAT(shares, ::testing::ElementsAre(0.125, 0.375, 0.5));
  EXPECT_THAT(SourceShares(options, {1, 1, 1}).at(0, {false, true, true}),
              ::testing::ElementsAre(0.0, 0.5, 0.5));
  EXPECT_THAT(SourceShares(options, {1, 1, 1}).at(0, {false, false, true}),
              ::testing::ElementsAre(0.0, 0.0, 1.0));
}

TEST(MixerTest, SizesMakeWeightsWhereAsked) {
  auto options = options_of({source("a", 1.0), source("b", 1.0)});
  options.mixing = "size";
  EXPECT_THAT(SourceShares(options, {100, 300}).at(0, {true, true}), ::testing::ElementsAre(0.25, 0.75));
  options.mixing = "temperature";
  options.mixing_alpha = 0.5;
  EXPECT_THAT(SourceShares(options, {100, 900}).at(0, {true, true}), ::testing::ElementsAre(0.25, 0.75));
}

TEST(MixerTest, EndedSourcesLeaveTheirShareToTheOthers) {
  const auto options = options_of({source("a", 1.0), source("b", 1.0), source("c", 2.0)});
  const Mixer mixer = mixer_of(options, 8, {20, -1, -1});
  const auto given = mixer.given_before(100);
  EXPECT_EQ(given[0], 20);
  EXPECT_EQ(std::accumulate(given.begin(), given.end(), int64_t{0}), 800);
  EXPECT_NEAR(static_cast<double>(given[2] - 40) / static_cast<double>(given[1] - 20), 2.0, 0.05);
  EXPECT_EQ(mixer.num_steps(), std::nullopt);
}

TEST(MixerTest, TheLastStepHoldsWhatIsLeft) {
  const Mixer mixer = mixer_of(options_of({source("a", 1.0), source("b", 9.0)}), 8, {21, 30});
  EXPECT_EQ(mixer.num_steps(), 7);  // 6 steps of 8, and 3 items
  EXPECT_EQ(mixer.given_before(7), (std::vector<int64_t>{21, 30}));
  const auto before = mixer.given_before(6);
  EXPECT_EQ(before[0] + before[1], 48);
}

TEST(MixerTest, RefusesStepsWithoutWeights) {
  auto early = source("early", 1.0);
  early.weight = {{0, 1.0}, {100, 0.0}};
  EXPECT_THAT([&] { (void)mixer_of(options_of({early}), 8); },
              ThrowsMessage<InvalidInput>(HasSubstr("at step 100")));
}

}  // namespace
}  // namespace chiliad::stepplan
