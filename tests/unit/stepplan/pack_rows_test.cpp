#include "chiliad/stepplan/pack_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/report.h"
#include "tests/support/document_index.h"

namespace chiliad::stepplan {
namespace {

class PackRowsTest : public ::testing::Test {
 protected:
  PackRowsTest() : index_(test::document_index(2000, 700)) {
    options_.mode = "pack";
    options_.batch = 128;
    options_.sequence_length = 512;
    make_plan();
  }

  void make_plan() {
    plan_ = std::make_unique<Plan>(index_, options_, 1, test::document_tokens(index_), Digest{1, 2});
  }
  static PackOptions options(int ranks, int64_t max_tokens = 1024) {
    PackOptions options;
    options.num_ranks = ranks;
    options.max_tokens = max_tokens;
    options.row_work = test::row_work();
    return options;
  }
  PackedStep packed(int64_t step, const PackOptions& pack_options) const {
    return pack(plan_->select(step, {}), plan_->buckets(), pack_options);
  }

  index::Index index_;
  spec::DataOptions options_;
  std::unique_ptr<Plan> plan_;
};

TEST_F(PackRowsTest, DocumentsAreCutToTheSequenceLength) {
  uint32_t longest = 0;
  for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) {
    for (const Item& item : plan_->select(step, {}).items) {
      EXPECT_EQ(item.num_tokens,
                std::min(index_.shards()[0].captions[static_cast<size_t>(item.caption)].length - 1, 512U));
      longest = std::max(longest, item.num_tokens);
    }
  }
  EXPECT_EQ(longest, 512U);
  EXPECT_GT(plan_->coverage().cut, 0);
}

TEST_F(PackRowsTest, AnEpochHoldsEveryDocumentOnce) {
  std::multiset<int64_t> samples;
  for (int64_t step = 0; step < plan_->steps_per_epoch(); ++step) {
    for (const auto& slots : packed(step, options(3)).slots) {
      for (const auto& slot : slots) {
        for (const Item& item : slot.items) samples.insert(item.sample);
      }
    }
  }
  EXPECT_EQ(samples.size(), 2000U);
  EXPECT_EQ(std::set<int64_t>(samples.begin(), samples.end()).size(), 2000U);
}

TEST_F(PackRowsTest, LeavesOutDocumentsWithoutTarget) {
  auto shards = index_.shards();
  shards[0].captions[5].length = 1;
  shards[0].samples[6].num_captions = 0;
  index_ = index::Index::from_shards({}, std::move(shards));
  make_plan();
  EXPECT_EQ(plan_->items_per_epoch(), 1998);
  EXPECT_EQ(plan_->coverage().too_short, 1);
  EXPECT_EQ(plan_->coverage().no_caption, 1);
}

TEST_F(PackRowsTest, StepsAreTheSameForEveryLayout) {
  std::set<Digest> digests;
  for (const int ranks : {1, 2, 7}) {
    std::vector<Item> items;
    Step step = plan_->select(3, {});
    for (const auto& slots : packed(3, options(ranks, 512 * ranks)).slots) {
      for (const auto& slot : slots) items.insert(items.end(), slot.items.begin(), slot.items.end());
    }
    std::sort(items.begin(), items.end(),
              [](const Item& a, const Item& b) { return a.position < b.position; });
    step.items = items;
    digests.insert(step.digest());
  }
  EXPECT_EQ(digests.size(), 1U);
}

TEST_F(PackRowsTest, RowsAreWithinTheLimitAndInPlanOrder) {
  for (const int64_t limit : {512, 600, 4096}) {
    for (const auto& slots : packed(2, options(3, limit)).slots) {
      for (const auto& slot : slots) {
        EXPECT_LE(slot.num_tokens(), limit);
        EXPECT_TRUE(std::is_sorted(slot.items.begin(), slot.items.end(),
                                   [](const Item& a, const Item& b) { return a.position < b.position; }));
      }
    }
  }
}

TEST_F(PackRowsTest, RanksHaveEqualNumbersOfSlots) {
  for (const int ranks : {2, 7, 300}) {
    const PackedStep step = packed(1, options(ranks));
    ASSERT_EQ(step.slots.size(), static_cast<size_t>(ranks));
    for (const auto& slots : step.slots) EXPECT_EQ(slots.size(), step.slots[0].size());
  }
}

TEST_F(PackRowsTest, WorkIsWhatTheModelSaysOfTheRows) {
  const PackedStep step = packed(4, options(4));
  for (size_t r = 0; r < step.slots.size(); ++r) {
    double sum = 0.0;
    for (const auto& slot : step.slots[r]) {
      double squares = 0.0;
      for (const Item& item : slot.items) squares += static_cast<double>(item.num_tokens) * item.num_tokens;
      sum += test::row_work()(slot.num_tokens(), squares);
    }
    EXPECT_NEAR(step.rank_work[r], sum, 1e-9);
  }
}

TEST_F(PackRowsTest, RanksAreBalancedWithTheQuadraticPart) {
  const PlanReport report = make_report(*plan_, {}, 0, options(4));
  EXPECT_LE(report.balance_mean, 1.02);
  EXPECT_LE(report.balance_worst, 1.05);
}

TEST_F(PackRowsTest, RanksOfFewDocumentsAreBalanced) {
  const PlanReport report = make_report(*plan_, {}, 0, options(16));
  EXPECT_LE(report.balance_mean, 1.03);
}

TEST_F(PackRowsTest, RowsAreNearlyFull) {
  EXPECT_GE(make_report(*plan_, {}, 0, options(2, 1024)).row_fill, 0.9);
}

TEST_F(PackRowsTest, ReportsNoPadding) {
  const PlanReport report = make_report(*plan_, {}, 0, options(2));
  EXPECT_EQ(report.padded_tokens, 0);
  EXPECT_THAT(report.to_table(),
              ::testing::HasSubstr("padding               0; rows of at most 1024 tokens"));
  EXPECT_THAT(report.to_json(), ::testing::HasSubstr("\"cut_tokens\""));
}

TEST_F(PackRowsTest, CountsTokensOfItemsWithWeight) {
  Step step = plan_->select(0, {});
  const int64_t all = packed(0, options(2)).num_tokens;
  step.items[3].weight = 0.0F;
  const PackedStep with_bad = pack(step, plan_->buckets(), options(2));
  EXPECT_EQ(with_bad.num_tokens, all - step.items[3].num_tokens);
  EXPECT_EQ(with_bad.rank_work, packed(0, options(2)).rank_work);
}

TEST_F(PackRowsTest, AnEmptyStepHasNoSlots) {
  const PackedStep step = pack({}, plan_->buckets(), options(3));
  EXPECT_EQ(step.slots.size(), 3U);
  EXPECT_TRUE(step.slots[0].empty());
}

TEST_F(PackRowsTest, ResumeRefusesAnotherEncoder) {
  const Plan other(index_, options_, 1, test::document_tokens(index_), Digest{1, 3});
  EXPECT_THROW(other.check_resumable(plan_->cursor(5, {})), InvalidInput);
}

TEST_F(PackRowsTest, ResumeRefusesAnotherSequenceLength) {
  options_.sequence_length = 256;
  const Plan other(index_, options_, 1, test::document_tokens(index_), Digest{1, 2});
  EXPECT_THROW(other.check_resumable(plan_->cursor(5, {})), InvalidInput);
}

TEST_F(PackRowsTest, ResumeAllowsOtherRows) {
  options_.micro_batch_tokens = 1 << 20;
  const Plan other(index_, options_, 1, test::document_tokens(index_), Digest{1, 2});
  EXPECT_NO_THROW(other.check_resumable(plan_->cursor(5, {})));
}

}  // namespace
}  // namespace chiliad::stepplan
