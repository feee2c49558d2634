#include "chiliad/stepplan/bad_rates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr int64_t kBatch = 20;

/// A set of pictures, some of which are bad, gone through in steps as training does.
class BadRatesTest : public ::testing::Test {
 protected:
  explicit BadRatesTest(int64_t size = 4000, uint32_t shard_samples = 1000)
      : index_(test::synthetic_index(std::vector<test::PictureSize>(static_cast<size_t>(size), {32, 32, 10}),
                                     shard_samples)),
        groups_(index_) {
    options_.batch = kBatch;
    options_.order = "full";
  }

  /// Every sample of [first, last) with that chance.
  void spoil(int64_t first, int64_t last, double chance) {
    Rng rng({7});
    for (int64_t sample = first; sample < last; ++sample) {
      if (rng.uniform() < chance) bad_.insert(sample);
    }
  }

  void make_plan() {
    if (!plan_.has_value()) plan_.emplace(index_, options_, 3, [](uint32_t, uint32_t) { return 4U; });
  }

  /// What step `step` finds, in the order of samples.
  std::vector<Amendment> findings(const Step& step, const Journal& journal) const {
    std::set<int64_t> found;
    for (const Item& item : step.items) {
      const bool known = journal.weight(item.sample, step.step) == 0.0F;
      if (!known && bad_.contains(item.sample)) found.insert(item.sample);
    }
    std::vector<Amendment> list;
    for (const int64_t sample : found)
      list.push_back({step.step + 1, sample, index_.key(sample) + ": f: checksum: expected 1, got 2"});
    return list;
  }

  /// Steps from `step` on until a bound is crossed; the number of steps done.
  int64_t run(BadRates& rates, Journal& journal, int64_t step, int64_t end) {
    make_plan();
    excess_.reset();
    for (; step < end && !excess_.has_value(); ++step) {
      const Step selected = plan_->select(step, journal);
      const auto seen = count_groups(selected, groups_);
      const auto found = findings(selected, journal);
      for (const auto& amendment : found) journal.add(amendment);
      excess_ = rates.add_step(seen, found, groups_);
    }
    return step;
  }
  int64_t run(int64_t end) {
    BadRates rates(rates_);
    return run(rates, journal_, 0, end);
  }

  index::Index index_;
  SampleGroups groups_;
  spec::DataOptions options_;
  BadRateOptions rates_;
  std::optional<Plan> plan_;
  std::set<int64_t> bad_;
  Journal journal_;
  std::optional<BadExcess> excess_;
};

TEST_F(BadRatesTest, GoodDataCrossesNothing) {
  run(1000);
  EXPECT_FALSE(excess_.has_value());
}

TEST_F(BadRatesTest, ABadThirdOfOneShardIsCrossedByThatShard) {
  spoil(1000, 2000, 0.3);
  rates_.max_fraction = 0.2;
  rates_.max_fraction_source = 0.2;
  EXPECT_LT(run(200), 100);
  ASSERT_TRUE(excess_.has_value());
  EXPECT_EQ(excess_->group, 1U);
}

TEST_F(BadRatesTest, BadItemsInARowAtTheBeginningAreCrossedAtOnce) {
  options_.order = "sequential";
  spoil(0, 100, 1.0);
  EXPECT_LE(run(200), 2);
  EXPECT_TRUE(excess_.has_value());
}

TEST_F(BadRatesTest, FewBadItemsEverywhereCrossNothing) {
  spoil(0, 4000, 0.01);
  run(1000);
  EXPECT_FALSE(excess_.has_value());
}

TEST_F(BadRatesTest, ABurstIsCrossedLateInALongRun) {
  options_.order = "sequential";
  spoil(3500, 3800, 0.5);
  const int64_t step = run(200);
  ASSERT_TRUE(excess_.has_value());
  EXPECT_GT(step * kBatch, 3500);
  EXPECT_LT(step * kBatch, 3800);
}

TEST_F(BadRatesTest, WhatLeftTheWindowCountsNoLonger) {
  options_.order = "sequential";
  for (int64_t sample = 0; sample < 4000; sample += 25) bad_.insert(sample);  // 4 % all the time
  rates_.max_fraction_source = 1.0;
  run(200);
  EXPECT_FALSE(excess_.has_value());
}

class TinySetTest : public BadRatesTest {
 protected:
  TinySetTest() : BadRatesTest(12, 4) { options_.batch = 5; }
};

TEST_F(TinySetTest, OneBadItemIsNoReasonToStop) {
  bad_ = {5};
  run(2000);
  EXPECT_FALSE(excess_.has_value());
}

TEST_F(TinySetTest, HalfOfItIs) {
  bad_ = {0, 1, 2, 3, 4, 5};
  run(2000);
  EXPECT_TRUE(excess_.has_value());
}

TEST_F(TinySetTest, NoneAreBorneWhereTheBoundIsZero) {
  bad_ = {5};
  rates_.max_fraction = 0.0;
  run(2000);
  EXPECT_TRUE(excess_.has_value());
}

TEST_F(BadRatesTest, AResumeAnywhereCrossesAtTheSameStep) {
  spoil(0, 4000, 0.04);
  rates_ = {200, 0.07, 0.09};
  const int64_t expected = run(400);
  const auto whole = excess_;
  ASSERT_TRUE(whole.has_value());
  const Journal known = journal_;
  for (int64_t stop = 0; stop < expected; ++stop) {
    BadRates rates(rates_);
    Journal journal;
    ASSERT_EQ(run(rates, journal, 0, stop), stop);
    rates = BadRates::from_json(rates.to_json(), rates_);
    if (stop % 2 == 0) journal = known;  // what was agreed beyond the checkpoint
    ASSERT_EQ(run(rates, journal, stop, 400), expected) << "resumed at step " << stop;
    ASSERT_EQ(excess_->samples, whole->samples);
  }
}

TEST_F(BadRatesTest, SourcesAreCountedApartWhereThereAreSeveral) {
  auto shards = index_.shards();
  for (auto& shard : shards) {
    for (size_t i = 0; i < shard.samples.size(); ++i) shard.samples[i].source = static_cast<uint16_t>(i % 3);
  }
  const auto index = index::Index::from_shards({}, std::move(shards));
  const SampleGroups groups(index);
  EXPECT_EQ(groups.of(1002), 2U);
  EXPECT_EQ(groups.name(2), "source 2");
}

TEST_F(BadRatesTest, TheTextNamesEverythingThatHelps) {
  for (int i = 0; i < 4; ++i) journal_.add({1, i, index_.key(i) + ": f: checksum: expected 1, got 2"});
  journal_.add({1, 4, index_.key(4) + ": picture: truncated"});
  const std::string text = excess_text({1U, 5, 100, 0.04, {0, 1, 2, 3, 4}}, journal_, index_, groups_);
  EXPECT_THAT(text, HasSubstr("5 of the last 100 items were found bad"));
  EXPECT_THAT(text, HasSubstr("more than data.max_bad_fraction_source 0.04"));
  EXPECT_THAT(text, HasSubstr("checksum 4, picture 1"));
  EXPECT_THAT(text, HasSubstr("item0: f: checksum: expected 1, got 2, item1, item2, item3. "));
  EXPECT_THAT(text, HasSubstr("chiliad data quarantine"));
}

TEST(BadReasonTest, KindsAreTold) {
  EXPECT_EQ(reason_kind("k: a.tar: checksum: expected 1, got 2"), "checksum");
  EXPECT_EQ(reason_kind("k: a.tar: ends at byte 5, expected 7 bytes from 0"), "short file");
  EXPECT_EQ(reason_kind("k: storage: a.tar: read: Input/output error"), "storage");
  EXPECT_EQ(reason_kind("k: picture: JPEG: no"), "picture");
  EXPECT_EQ(reason_kind("k: caption: none"), "caption");
  EXPECT_EQ(reason_kind("k: something else"), "other");
}

TEST(BadRatesStateTest, DamageIsNamed) {
  EXPECT_THAT([] { (void)BadRates::from_json("{", {}); },
              ThrowsMessage<CorruptData>(HasSubstr("rates of bad items")));
}

TEST(JournalTest, KeepsTheTimeOfAFindingOutOfTheDigest) {
  Journal with;
  with.add({2, 5, "bad", "2026-01-01"});
  Journal without;
  without.add({2, 5, "bad"});
  EXPECT_EQ(with.digest(), without.digest());
  EXPECT_EQ(Journal::from_jsonl(with.to_jsonl()).amendments(), with.amendments());
}

TEST(JournalTest, RecallsAFindingInItsStepAlone) {
  Journal journal;
  journal.add({2, 5, "bad"});
  ASSERT_NE(journal.found_in(5, 1), nullptr);
  EXPECT_EQ(journal.found_in(5, 1)->reason, "bad");
  EXPECT_EQ(journal.found_in(5, 0), nullptr);
  EXPECT_EQ(journal.found_in(5, 2), nullptr);
  EXPECT_EQ(journal.found_in(4, 1), nullptr);
}

}  // namespace
}  // namespace chiliad::stepplan
