#include "chiliad/stepplan/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "chiliad/base/error.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

index::Index small_index(int64_t count = 997) {
  return test::synthetic_index(
      test::draw_sizes({{100, 100, 10}, {100, 170, 33}, {300, 110, 5}, {200, 120, 60}}, count, 5), 300, 7);
}

spec::DataOptions small_options() {
  spec::DataOptions options;
  options.batch = 16;
  options.window_blocks = 30;
  return options;
}

std::multiset<int64_t> samples_of_epoch(const Plan& plan, int64_t epoch) {
  std::multiset<int64_t> samples;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    for (const Item& item : plan.select(epoch * plan.steps_per_epoch() + step, {}).items)
      samples.insert(item.sample);
  }
  return samples;
}

class PlanOrderTest : public ::testing::TestWithParam<std::pair<const char*, int64_t>> {
 protected:
  spec::DataOptions options() const {
    spec::DataOptions options = small_options();
    options.order = GetParam().first;
    options.shape_clusters = GetParam().second;
    return options;
  }
};

TEST_P(PlanOrderTest, EpochsHoldEveryItemOnce) {
  const auto index = small_index();
  const Plan plan(index, options(), 3, test::byte_tokens(index));
  for (const int64_t epoch : {0, 1, 7}) {
    const auto samples = samples_of_epoch(plan, epoch);
    EXPECT_EQ(samples.size(), 997U);
    EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), 997U);
  }
}

TEST_P(PlanOrderTest, StepsOfAWindowDifferByOneItemAtMost) {
  const auto index = small_index();
  const Plan plan(index, options(), 3, test::byte_tokens(index));
  std::map<int64_t, std::pair<size_t, size_t>> sizes;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Step selected = plan.select(step, {});
    ASSERT_LE(selected.items.size(), 16U);
    auto& [low, high] = sizes.try_emplace(selected.window, 1000U, 0U).first->second;
    low = std::min(low, selected.items.size());
    high = std::max(high, selected.items.size());
  }
  for (const auto& [window, range] : sizes) EXPECT_LE(range.second - range.first, 1U) << "window " << window;
}

TEST_P(PlanOrderTest, SelectDependsOnNothingButTheStep) {
  const auto index = small_index();
  const Plan one(index, options(), 3, test::byte_tokens(index));
  const Plan other(index, options(), 3, test::byte_tokens(index));
  std::vector<Digest> forward;
  for (int64_t step = 0; step < 200; ++step) forward.push_back(one.select(step, {}).digest());
  for (int64_t step = 199; step >= 0; --step) {
    ASSERT_EQ(other.select(step, {}).digest(), forward[static_cast<size_t>(step)]) << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, PlanOrderTest,
                         ::testing::Values(std::pair("window", 1), std::pair("full", 1),
                                           std::pair("sequential", 1), std::pair("window", 3),
                                           std::pair("full", 2)));

TEST(PlanTest, WindowsKeepToTheirBlocks) {
  const auto index = small_index(4000);
  spec::DataOptions options = small_options();
  const Plan plan(index, options, 3, test::byte_tokens(index));
  ASSERT_GT(plan.order().windows().size(), 10U);
  std::map<int64_t, std::set<int64_t>> blocks;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    const Step selected = plan.select(step, {});
    for (const Item& item : selected.items)
      blocks[selected.window].insert(item.sample / 300 * 100 + item.sample % 300 / 7);
  }
  for (const auto& [window, found] : blocks) EXPECT_LE(found.size(), 30U + 4U) << "window " << window;
}

TEST(PlanTest, EpochsAndSeedsDiffer) {
  const auto index = small_index();
  const Plan plan(index, small_options(), 3, test::byte_tokens(index));
  const Plan other(index, small_options(), 4, test::byte_tokens(index));
  const auto first = plan.select(0, {}).items;
  EXPECT_NE(first[0].sample, plan.select(plan.steps_per_epoch(), {}).items[0].sample);
  EXPECT_NE(first[0].sample, other.select(0, {}).items[0].sample);
}

TEST(PlanTest, ClustersLeaveFewerShapesInAStep) {
  const auto index = small_index(4000);
  spec::DataOptions options = small_options();
  const auto shapes = [&] {
    const Plan plan(index, options, 3, test::byte_tokens(index));
    double sum = 0.0;
    for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
      std::set<int32_t> buckets;
      for (const Item& item : plan.select(step, {}).items) buckets.insert(item.bucket);
      sum += static_cast<double>(buckets.size());
    }
    return sum / static_cast<double>(plan.steps_per_epoch());
  };
  const double mixed = shapes();
  options.shape_clusters = 4;
  EXPECT_LT(shapes(), 0.6 * mixed);
}

TEST(PlanTest, CountsWhatIsLeftOut) {
  auto shards = small_index(100).shards();
  shards[0].samples[3].flags |= index::kBadImage;
  shards[0].samples[4].num_captions = 0;
  shards[0].captions[5].language = index::language_code("de");
  shards[0].parts[2 * 6].width = 100'000;
  const auto index = index::Index::from_shards({}, shards);
  spec::DataOptions options = small_options();
  options.max_aspect_error = 1.0;
  options.limit = 90;
  const Plan plan(index, options, 3, test::byte_tokens(index));
  EXPECT_EQ(plan.coverage().bad_image, 1);
  EXPECT_EQ(plan.coverage().no_caption, 2);
  EXPECT_EQ(plan.coverage().aspect, 1);
  EXPECT_EQ(plan.coverage().over_limit, 6);
  EXPECT_EQ(plan.coverage().in_order, 90);
}

TEST(PlanTest, LimitKeepsWhatASmallerLimitHas) {
  const auto index = small_index();
  spec::DataOptions options = small_options();
  options.limit = 50;
  const auto few = samples_of_epoch(Plan(index, options, 3, test::byte_tokens(index)), 0);
  options.limit = 100;
  const auto many = samples_of_epoch(Plan(index, options, 8, test::byte_tokens(index)), 2);
  EXPECT_EQ(many.size(), 100U);
  EXPECT_TRUE(std::includes(many.begin(), many.end(), few.begin(), few.end()));
}

TEST(PlanTest, RefusesAnEmptyOrder) {
  const auto index = small_index();
  spec::DataOptions options = small_options();
  options.languages = {"zh"};
  EXPECT_THAT([&] { Plan(index, options, 3, test::byte_tokens(index)); },
              ThrowsMessage<InvalidInput>(HasSubstr("997 without a caption")));
}

TEST(PlanTest, DrawsCaptionsOfWantedLanguagesOnly) {
  auto shards = small_index(100).shards();
  shards[0].captions.push_back({1, 0, 9, index::language_code("de")});
  shards[0].samples[0].first_caption = 99;  // 99: English, 100: German
  shards[0].samples[0].num_captions = 2;
  const auto index = index::Index::from_shards({}, shards);
  const auto captions = [&](std::vector<std::string> languages) {
    spec::DataOptions options = small_options();
    options.languages = std::move(languages);
    const Plan plan(index, options, 3, test::byte_tokens(index));
    std::set<int32_t> drawn;
    for (int64_t step = 0; step < 30 * plan.steps_per_epoch(); ++step) {
      for (const Item& item : plan.select(step, {}).items) {
        if (item.sample == 0) drawn.insert(item.caption);
      }
    }
    return drawn;
  };
  EXPECT_EQ(captions({"en"}), (std::set<int32_t>{99}));
  EXPECT_EQ(captions({"en", "de"}), (std::set<int32_t>{99, 100}));
  EXPECT_EQ(captions({}), (std::set<int32_t>{-1}));
}

TEST(PlanTest, FlipsHalfAndCropsAnywhereWhereAsked) {
  const auto index = small_index();
  spec::DataOptions options = small_options();
  options.flip = true;
  options.crop = "random";
  const Plan plan(index, options, 3, test::byte_tokens(index));
  int64_t flips = 0;
  double crops = 0.0;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step) {
    for (const Item& item : plan.select(step, {}).items) {
      flips += item.flip ? 1 : 0;
      crops += static_cast<double>(item.crop_x);
    }
  }
  EXPECT_NEAR(static_cast<double>(flips) / 997.0, 0.5, 0.06);
  EXPECT_NEAR(crops / 997.0, 0.5, 0.04);
}

TEST(PlanTest, JournalTakesTheWeightFromItsStepOn) {
  const auto index = small_index();
  const Plan plan(index, small_options(), 3, test::byte_tokens(index));
  const Step plain = plan.select(5, {});
  Journal journal;
  journal.add({5, plain.items[2].sample, "bad"});
  journal.add({6, plain.items[3].sample, "bad later"});
  const Step amended = plan.select(5, journal);
  EXPECT_EQ(amended.items[2].weight, 0.0F);
  EXPECT_EQ(amended.items[3].weight, 1.0F);
  EXPECT_NE(amended.digest(), plain.digest());
}

TEST(PlanTest, DigestSeesEveryField) {
  const auto index = small_index();
  const Step step = Plan(index, small_options(), 3, test::byte_tokens(index)).select(5, {});
  const auto changed = [&](auto&& change) {
    Step copy = step;
    change(copy.items[1]);
    return copy.digest() != step.digest();
  };
  EXPECT_TRUE(changed([](Item& item) { ++item.sample; }));
  EXPECT_TRUE(changed([](Item& item) { ++item.position; }));
  EXPECT_TRUE(changed([](Item& item) { ++item.bucket; }));
  EXPECT_TRUE(changed([](Item& item) { ++item.caption; }));
  EXPECT_TRUE(changed([](Item& item) { ++item.num_tokens; }));
  EXPECT_TRUE(changed([](Item& item) { item.crop_x = 0.25F; }));
  EXPECT_TRUE(changed([](Item& item) { item.crop_y = 0.25F; }));
  EXPECT_TRUE(changed([](Item& item) { item.flip = !item.flip; }));
  EXPECT_TRUE(changed([](Item& item) { item.weight = 0.0F; }));
  EXPECT_TRUE(changed([](Item& item) { ++item.draw_key; }));
}

TEST(PlanTest, CursorNamesTheNextStep) {
  const auto index = small_index();
  const Plan plan(index, small_options(), 3, test::byte_tokens(index));
  const Cursor cursor = plan.cursor(41, {});
  EXPECT_EQ(cursor.next_step, 41);
  EXPECT_EQ(Cursor::from_json(cursor.to_json()), cursor);
  EXPECT_NO_THROW(plan.check_resumable(cursor));
}

TEST(PlanTest, ResumeWithOtherInputsNamesThem) {
  const auto index = small_index();
  const Cursor cursor = Plan(index, small_options(), 3, test::byte_tokens(index)).cursor(41, {});
  const auto other_index = small_index(1300);
  spec::DataOptions options = small_options();
  options.flip = true;
  const Plan plan(other_index, options, 4, test::byte_tokens(other_index));
  EXPECT_THAT([&] { plan.check_resumable(cursor); },
              ThrowsMessage<InvalidInput>(::testing::AllOf(HasSubstr("data.index"), HasSubstr("content"),
                                                           HasSubstr("run.seed: was 3, is 4"))));
}

TEST(PlanTest, LayoutAndSpeedSettingsMayChangeOnResume) {
  const auto index = small_index();
  spec::DataOptions options = small_options();
  const Cursor cursor = Plan(index, options, 3, test::byte_tokens(index)).cursor(41, {});
  options.micro_batch_items = 2;
  options.loader_threads = 9;
  options.cache_bytes = 1;
  EXPECT_NO_THROW(Plan(index, options, 3, test::byte_tokens(index)).check_resumable(cursor));
}

/// Two sources of 400 and 100 pictures, by 3 to 1.
class MixedPlanTest : public ::testing::Test {
 protected:
  MixedPlanTest() : index_(index::Index::concatenate({small_index(400), small_index(100)})) {
    options_ = small_options();
    options_.sources.resize(2);
    options_.sources[0].name = "many";
    options_.sources[0].weight = {{0, 3.0}};
    options_.sources[1].name = "few";
  }
  [[nodiscard]] Plan plan(uint64_t seed = 3) const {
    return {index_, options_, seed, test::byte_tokens(index_)};
  }

  index::Index index_;
  spec::DataOptions options_;
};

TEST_F(MixedPlanTest, StepsHoldTheirShares) {
  const Plan plan = this->plan();
  for (int64_t step = 0; step < 50; ++step) {
    const auto items = plan.select(step, {}).items;
    ASSERT_EQ(items.size(), 16U);
    EXPECT_EQ(std::count_if(items.begin(), items.end(), [](const Item& item) { return item.sample >= 400; }),
              4);
  }
}

TEST_F(MixedPlanTest, ASourceKeepsItsOrderBesideOthers) {
  const auto of_few = [](const Plan& plan, int64_t steps, int64_t first) {
    std::vector<int64_t> samples;
    for (int64_t step = 0; step < steps; ++step)
      for (const Item& item : plan.select(step, {}).items)
        if (item.sample >= first) samples.push_back(item.sample - first);
    return samples;
  };
  const auto beside = of_few(plan(), 80, 400);
  index_ = index::Index::concatenate({small_index(250), small_index(100)});
  const auto beside_another = of_few(plan(), 80, 250);
  EXPECT_EQ(beside, beside_another);
}

TEST_F(MixedPlanTest, LanguagesAreASourcesOwn) {
  options_.languages = {"de"};
  options_.sources[0].languages = {"en"};
  options_.sources[1].languages = {"en"};
  EXPECT_EQ(plan().items_per_epoch(), 500);
  options_.sources[1].languages = {"fr"};
  EXPECT_THAT([&] { (void)plan(); },
              ThrowsMessage<InvalidInput>(
                  ::testing::AllOf(HasSubstr("data.sources: few"), HasSubstr("100 without a caption"))));
}

TEST_F(MixedPlanTest, TheEndIsNamed) {
  options_.sources[0].epochs = 1;
  options_.sources[1].epochs = 2;
  const Plan plan = this->plan();
  EXPECT_EQ(plan.num_steps(), 38);  // of 600 items
  EXPECT_EQ(plan.select(37, {}).items.size(), 8U);
  EXPECT_THAT([&] { (void)plan.select(38, {}); }, ThrowsMessage<InvalidInput>(HasSubstr("a step below 38")));
}

TEST_F(MixedPlanTest, HeldOutItemsAreThoseOfEachSource) {
  options_.held_out = 7;
  const Plan held_out(index_, options_, 3, test::byte_tokens(index_), {}, PlanPart::kHeldOut);
  const auto samples = samples_of_epoch(held_out, 0);
  EXPECT_EQ(samples.size(), 14U);
  EXPECT_EQ(std::distance(samples.lower_bound(400), samples.end()), 7);
  const Plan training = plan();
  for (int64_t step = 0; step < 100; ++step)
    for (const Item& item : training.select(step, {}).items) ASSERT_EQ(samples.count(item.sample), 0U);
}

TEST_F(MixedPlanTest, ConcatenatedSourcesAreOneDataSet) {
  options_.mixing = "concatenate";
  const auto samples = samples_of_epoch(plan(), 1);
  EXPECT_EQ(samples.size(), 500U);
  EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), 500U);
}

TEST_F(MixedPlanTest, ResumeWithAnotherMixIsRefused) {
  const Cursor cursor = Cursor::from_json(plan().cursor(9, {}).to_json());
  EXPECT_NO_THROW(plan().check_resumable(cursor));
  options_.sources[1].weight = {{0, 2.0}};
  EXPECT_THAT([&] { plan().check_resumable(cursor); },
              ThrowsMessage<InvalidInput>(HasSubstr("decide content")));
}

TEST_F(MixedPlanTest, ResumeWithAnotherSourceNamesIt) {
  const Cursor cursor = plan().cursor(9, {});
  index_ = index::Index::concatenate({small_index(400), small_index(350)});
  EXPECT_THAT(
      [&] { plan().check_resumable(cursor); },
      ThrowsMessage<InvalidInput>(::testing::AllOf(HasSubstr("data.sources: was many "), HasSubstr("few"))));
}

TEST_F(MixedPlanTest, ClustersNeedOneDataSet) {
  options_.shape_clusters = 2;
  EXPECT_THAT([&] { (void)plan(); },
              ThrowsMessage<InvalidInput>(HasSubstr("data.shape_clusters: expected 1")));
}

TEST(CursorTest, RefusesWhatIsNoCursor) {
  EXPECT_THROW((void)Cursor::from_json("{}"), CorruptData);
  EXPECT_THROW((void)Cursor::from_json("not json"), CorruptData);
}

TEST(JournalTest, SurvivesItsText) {
  Journal journal;
  journal.add({3, 17, "checksum \"x\""});
  journal.add({4, 5, "decode"});
  journal.add({9, 17, "again"});
  const Journal read = Journal::from_jsonl(journal.to_jsonl());
  EXPECT_EQ(read.amendments(), journal.amendments());
  EXPECT_EQ(read.digest(), journal.digest());
  EXPECT_EQ(read.amendments().size(), 2U);
}

TEST(JournalTest, NamesTheBrokenLine) {
  EXPECT_THAT([] { (void)Journal::from_jsonl("{\"from_step\":1,\"sample\":2,\"reason\":\"\"}\n{\"from"); },
              ThrowsMessage<CorruptData>(HasSubstr("journal:2")));
}

}  // namespace
}  // namespace chiliad::stepplan
