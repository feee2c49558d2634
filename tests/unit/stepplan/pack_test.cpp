#include "chiliad/stepplan/pack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "chiliad/stepplan/report.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

class PackTest : public ::testing::Test {
 protected:
  PackTest()
      : index_(test::synthetic_index(
            test::draw_sizes(test::read_sizes(CHILIAD_TEST_DATA "/stepplan/stamp_sizes.csv"), 2000, 1))) {
    options_.batch = 64;
    plan_ = std::make_unique<Plan>(index_, options_, 1, test::byte_tokens(index_));
  }

  PackedStep packed(int64_t step, int ranks, int64_t max_items = 32) const {
    return pack(plan_->select(step, {}), plan_->buckets(), {ranks, max_items, test::transformer_work()});
  }

  index::Index index_;
  spec::DataOptions options_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(PackTest, HoldsEveryItemOnceForAnyNumberOfRanks) {
  for (const int ranks : {1, 2, 3, 5, 64, 100}) {
    std::vector<uint32_t> positions;
    for (const auto& slots : packed(3, ranks).slots) {
      for (const auto& slot : slots) {
        for (const Item& item : slot.items) positions.push_back(item.position);
      }
    }
    std::sort(positions.begin(), positions.end());
    const size_t count = plan_->select(3, {}).items.size();
    ASSERT_EQ(positions.size(), count) << ranks << " ranks";
    for (size_t i = 0; i < count; ++i) ASSERT_EQ(positions[i], i) << ranks << " ranks";
  }
}

TEST_F(PackTest, MicroBatchesHaveOneBucketInPlanOrderWithinTheLimit) {
  for (const auto& slots : packed(2, 3, 5).slots) {
    for (const auto& slot : slots) {
      EXPECT_LE(slot.items.size(), 5U);
      for (size_t i = 0; i < slot.items.size(); ++i) {
        EXPECT_EQ(slot.items[i].bucket, slot.bucket);
        if (i > 0) {
          EXPECT_LT(slot.items[i - 1].position, slot.items[i].position);
        }
      }
    }
  }
}

TEST_F(PackTest, RanksHaveEqualNumbersOfSlots) {
  for (const int ranks : {2, 7, 100}) {
    const PackedStep step = packed(1, ranks);
    ASSERT_EQ(step.slots.size(), static_cast<size_t>(ranks));
    for (const auto& slots : step.slots) EXPECT_EQ(slots.size(), step.slots[0].size());
  }
}

TEST_F(PackTest, WorkIsWhatTheModelSaysOfTheMicroBatches) {
  const PackedStep step = packed(4, 4);
  for (size_t r = 0; r < step.slots.size(); ++r) {
    double sum = 0.0;
    for (const auto& slot : step.slots[r]) {
      int64_t longest = 0;
      for (const Item& item : slot.items) longest = std::max<int64_t>(longest, item.num_tokens);
      if (slot.items.empty()) continue;
      sum += test::transformer_work()(plan_->buckets()[static_cast<size_t>(slot.bucket)],
                                      static_cast<int64_t>(slot.items.size()), longest);
    }
    EXPECT_NEAR(step.rank_work[r], sum, 1e-9);
  }
}

TEST_F(PackTest, RanksOfTheStampsAreBalanced) {
  const PlanReport report = make_report(*plan_, {}, 0, {4, 32, test::transformer_work()});
  EXPECT_LE(report.balance_mean, 1.03);
  EXPECT_LE(report.balance_worst, 1.10);
}

TEST_F(PackTest, ManyRanksOfManyItemsAreBalanced) {
  options_.batch = 256;
  const Plan plan(index_, options_, 1, test::byte_tokens(index_));
  const PlanReport report = make_report(plan, {}, 0, {8, 32, test::transformer_work()});
  EXPECT_LE(report.balance_mean, 1.03);
  EXPECT_LE(report.balance_worst, 1.10);
}

TEST_F(PackTest, KeepsMicroBatchesFew) {
  const PlanReport report = make_report(*plan_, {}, 0, {4, 32, test::transformer_work()});
  EXPECT_LE(report.micro_batches, 6.0);  // 9 buckets, 16 items a rank
}

TEST_F(PackTest, OneRankNeedsOneMicroBatchABucket) {
  const PackedStep step = packed(0, 1, 64);
  std::set<int32_t> buckets;
  for (const auto& slot : step.slots[0]) EXPECT_TRUE(buckets.insert(slot.bucket).second);
}

TEST_F(PackTest, BadItemsKeepTheirPlaceButDoNotCount) {
  Step step = plan_->select(0, {});
  const auto count = static_cast<int64_t>(step.items.size());
  step.items[1].weight = 0.0F;
  const PackOptions options{4, 32, test::transformer_work()};
  const PackedStep with_bad = pack(step, plan_->buckets(), options);
  EXPECT_EQ(with_bad.num_items, count - 1);
  EXPECT_EQ(with_bad.rank_work, pack(plan_->select(0, {}), plan_->buckets(), options).rank_work);
}

TEST_F(PackTest, AnEmptyStepHasNoSlots) {
  const PackedStep step = pack({}, plan_->buckets(), {3, 32, test::transformer_work()});
  EXPECT_EQ(step.slots.size(), 3U);
  EXPECT_EQ(step.imbalance(), 1.0);
}

TEST_F(PackTest, ReportCountsTheEpoch) {
  const PlanReport report = make_report(*plan_, {}, 0, {4, 32, test::transformer_work()});
  EXPECT_EQ(report.items, 2000);
  int64_t sum = 0;
  for (const auto& bucket : report.buckets) sum += bucket.items;
  EXPECT_EQ(sum, 2000);
  EXPECT_NEAR(report.displacement, 1.0, 0.15);
  EXPECT_LT(report.neighbours_kept, 0.01);
  EXPECT_NE(report.to_json().find("\"bound_mean\""), std::string::npos);
  EXPECT_NE(report.to_table().find("balance"), std::string::npos);
}

}  // namespace
}  // namespace chiliad::stepplan
