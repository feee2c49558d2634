// Work at the points where ranks wait: steps and slots, in total and by component.
#include "chiliad/stepplan/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "chiliad/base/rng.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::DoubleEq;
using ::testing::ElementsAre;

const std::vector<Bucket> kNoBuckets{{}};

MicroBatch made(double vision, double language) {
  MicroBatch batch;
  batch.items.emplace_back();
  batch.works = {vision, language};
  batch.work = vision + language;
  return batch;
}

PackOptions of_two(Sync sync) {
  PackOptions options;
  options.components = {"vision", "language"};
  options.sync = sync;
  return options;
}

PackedStep two_ranks() {
  PackedStep packed;
  packed.slots = {{made(1.0, 3.0), made(3.0, 1.0)}, {made(3.0, 1.0), made(1.0, 3.0)}};
  return packed;
}

TEST(BalanceTest, AStepCountsWhatARankDoesInIt) {
  const Balance balance = balance_of(two_ranks(), of_two(Sync::kStep));
  EXPECT_DOUBLE_EQ(balance.total, 1.0);
  EXPECT_THAT(balance.components, ElementsAre(DoubleEq(1.0), DoubleEq(1.0)));
}

TEST(BalanceTest, ASlotCountsByItself) {
  const Balance balance = balance_of(two_ranks(), of_two(Sync::kSlot));
  EXPECT_DOUBLE_EQ(balance.total, 1.0);
  EXPECT_THAT(balance.components, ElementsAre(DoubleEq(1.5), DoubleEq(1.5)));
}

TEST(BalanceTest, TimeIsThatOfAllPoints) {
  PackedStep packed;
  packed.slots = {{made(0.0, 3.0), made(0.0, 10.0)}, {made(0.0, 1.0), made(0.0, 10.0)}};
  const Balance balance = balance_of(packed, of_two(Sync::kSlot));
  EXPECT_DOUBLE_EQ(balance.total, 1.5);
  EXPECT_DOUBLE_EQ(balance.time, 13.0 / 12.0);
}

TEST(BalanceTest, BoundIsThatOfWholeItems) {
  EXPECT_DOUBLE_EQ(granularity_bound({1.0, 1.0, 1.0}, 2, 3.0), 4.0 / 3.0);  // two on one of them
  EXPECT_DOUBLE_EQ(granularity_bound({1.0, 1.0, 4.0}, 2, 6.0), 4.0 / 3.0);  // the largest
  EXPECT_DOUBLE_EQ(granularity_bound({2.0, 2.0}, 2, 4.0), 1.0);
}

/// Documents with pictures: rows of whole items, work by component.
Step documents(size_t count) {
  Rng rng({9, 9});
  Step step;
  for (size_t i = 0; i < count; ++i) {
    Item& item = step.items.emplace_back();
    item.sample = item.position = static_cast<uint32_t>(i);
    item.num_tiles = static_cast<uint32_t>(rng.below(6));
    item.image_tokens = 576 * item.num_tiles;
    item.num_tokens = item.image_tokens + 20 + static_cast<uint32_t>(rng.below(300));
  }
  return step;
}

PackOptions of_documents(int ranks, Sync sync) {
  PackOptions options = of_two(sync);
  options.num_ranks = ranks;
  options.max_tokens = 32768;
  options.item_works = [](const Item& item) { return Works{0.003 * item.num_tiles, 1e-5 * item.num_tokens}; };
  options.row_overhead = {0.0, 0.001};
  return options;
}

class BalancedRowsTest : public ::testing::TestWithParam<Sync> {};

TEST_P(BalancedRowsTest, RanksDoLikeWorkInEveryComponent) {
  const auto options = of_documents(61, GetParam());
  const Balance balance = balance_of(pack(documents(61 * 16), kNoBuckets, options), options);
  EXPECT_LE(balance.total, 1.02);
  EXPECT_THAT(balance.components, ::testing::Each(::testing::Le(1.05)));
}

TEST_P(BalancedRowsTest, AllRanksTogetherHoldEachItemOnce) {
  const auto step = documents(500);
  std::map<uint32_t, int> seen;
  for (const auto& slots : pack(step, kNoBuckets, of_documents(13, GetParam())).slots) {
    for (const MicroBatch& slot : slots) {
      for (const Item& item : slot.items) ++seen[item.position];
    }
  }
  EXPECT_EQ(seen.size(), step.items.size());
  for (const auto& [position, times] : seen) EXPECT_EQ(times, 1) << position;
}

TEST_P(BalancedRowsTest, RowsHoldTheirBound) {
  for (const auto& slots : pack(documents(500), kNoBuckets, of_documents(3, GetParam())).slots) {
    for (const MicroBatch& slot : slots) EXPECT_LE(slot.num_tokens(), 32768);
  }
}

TEST_P(BalancedRowsTest, DealingInTurnIsWorse) {
  auto options = of_documents(61, Sync::kStep);
  options.in_order = true;
  EXPECT_GT(balance_of(pack(documents(61 * 16), kNoBuckets, options), options).total, 1.2);
}

INSTANTIATE_TEST_SUITE_P(Points, BalancedRowsTest, ::testing::Values(Sync::kStep, Sync::kSlot));

/// Pictures of two buckets, 300 and 120 of them.
Step pictures() {
  Step step;
  for (uint32_t i = 0; i < 420; ++i) {
    Item& item = step.items.emplace_back();
    item.sample = item.position = i;
    item.bucket = i % 7 < 5 ? 0 : 1;
    item.num_tokens = 20;
  }
  return step;
}

const std::vector<Bucket> kTwo{{64, 64}, {96, 48}};

PackOptions of_pictures(int ranks) {
  PackOptions options{ranks, 32, test::transformer_work()};
  options.sync = Sync::kSlot;
  return options;
}

TEST(BalancedSlotsTest, SlotsReachWhatWholeItemsAllow) {
  const auto options = of_pictures(7);
  const auto packed = pack(pictures(), kTwo, options);
  const double bound = granularity_of(packed, kTwo, options).total;
  EXPECT_LE(balance_of(packed, options).total, bound + 0.001);
  EXPECT_LE(bound, 1.1);
}

TEST(BalancedSlotsTest, AMicroBatchIsOfOneBucketAndHoldsItsBound) {
  for (const auto& slots : pack(pictures(), kTwo, of_pictures(5)).slots) {
    for (const MicroBatch& slot : slots) {
      EXPECT_LE(slot.items.size(), 32U);
      for (const Item& item : slot.items) EXPECT_EQ(item.bucket, slot.bucket);
    }
  }
}

TEST(BalancedSlotsTest, RanksHaveTheSameNumberOfSlots) {
  const auto packed = pack(pictures(), kTwo, of_pictures(5));
  size_t items = 0;
  for (const auto& slots : packed.slots) {
    EXPECT_EQ(slots.size(), packed.slots[0].size());
    for (const MicroBatch& slot : slots) items += slot.items.size();
  }
  EXPECT_EQ(items, 420U);
}

TEST(BalancedSlotsTest, AnEmptyStepHasNoSlots) {
  EXPECT_TRUE(pack({}, kTwo, of_pictures(3)).slots[2].empty());
}

TEST(PaddedTest, ItemsKeepTheirOrderAndArePaddedToTheLargest) {
  PackOptions options{2, 4, test::transformer_work(0.0)};
  options.pad = true;
  Step step = pictures();
  step.items.resize(16);
  const auto packed = pack(step, kTwo, options);
  ASSERT_EQ(packed.slots[0].size(), 2U);
  const MicroBatch& slot = packed.slots[0][0];  // items 0, 2, 4, 6: buckets 0, 0, 0, 1
  ASSERT_EQ(slot.items.size(), 4U);
  EXPECT_EQ(slot.items[3].position, 6U);
  EXPECT_DOUBLE_EQ(slot.work, test::transformer_work(0.0)({96, 64}, 4, 20));
}

TEST(PaddedTest, DocumentsArePaddedToTheLongest) {
  PackOptions options;
  options.pad = true;
  options.max_tokens = 1000;
  options.row_work = [](int64_t tokens, double squares) {
    return static_cast<double>(tokens) + 1e-9 * squares;
  };
  Step step;
  for (const uint32_t length : {100U, 300U, 300U, 900U}) {
    Item& item = step.items.emplace_back();
    item.position = static_cast<uint32_t>(step.items.size() - 1);
    item.num_tokens = length;
  }
  const auto packed = pack(step, kNoBuckets, options);
  ASSERT_EQ(packed.slots[0].size(), 2U);
  EXPECT_NEAR(packed.slots[0][0].work, 900.0, 0.01);  // three of 300
  EXPECT_NEAR(packed.slots[0][1].work, 900.0, 0.01);
}

}  // namespace
}  // namespace chiliad::stepplan
