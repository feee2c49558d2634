#include "chiliad/stepplan/staged_buckets.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "chiliad/base/error.h"
#include "chiliad/stepplan/pack.h"
#include "chiliad/stepplan/plan.h"
#include "chiliad/stepplan/report.h"
#include "chiliad/stepplan/work_model.h"
#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

/// 32 pixels, from step 3 on 64.
spec::DataOptions staged() {
  spec::DataOptions options;
  options.batch = 16;
  spec::ShapeStage stage;
  stage.from = 3;
  stage.resolution = 64;
  stage.bucket_min = 32;
  stage.bucket_max = 128;
  options.stages = {stage};
  return options;
}

index::Index pictures(int64_t count = 100) {
  return test::synthetic_index(test::draw_sizes({{100, 100, 10}, {100, 170, 33}, {300, 110, 5}}, count, 5));
}

Plan plan_of(const index::Index& index, const spec::DataOptions& options,
             PlanPart part = PlanPart::kTraining) {
  return {index, options, 1, test::byte_tokens(index), {}, part};
}

double pixels_of(const Plan& plan, const Item& item) {
  const Bucket bucket = plan.buckets()[static_cast<size_t>(item.bucket)];
  return static_cast<double>(bucket.width) * bucket.height;
}

TEST(StagedBucketsTest, ShapesAreThoseOfTheStepsStage) {
  const auto index = pictures();
  const Plan plan = plan_of(index, staged());
  for (int64_t step = 0; step < 7; ++step) {
    const double about = step < 3 ? 32.0 * 32.0 : 64.0 * 64.0;
    for (const Item& item : plan.select(step, {}).items)
      EXPECT_NEAR(pixels_of(plan, item) / about, 1.0, 0.3) << "step " << step;
  }
}

TEST(StagedBucketsTest, StagesChangeShapesAndNothingElse) {
  const auto index = pictures();
  auto plain = staged();
  plain.stages.clear();
  const Plan with = plan_of(index, staged());
  const Plan without = plan_of(index, plain);
  for (int64_t step = 0; step < 9; ++step) {
    auto items = with.select(step, {}).items;
    const auto other = without.select(step, {}).items;
    ASSERT_EQ(items.size(), other.size());
    for (size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(items[i].sample, other[i].sample);
      EXPECT_EQ(items[i].draw_key, other[i].draw_key);
      if (step >= 3) continue;
      EXPECT_EQ(items[i].bucket, other[i].bucket);
    }
  }
}

TEST(StagedBucketsTest, OnlyWhatEveryStageTakesIsInTheOrder) {
  auto options = staged();
  options.stages[0] = {3, "opensora-256"};
  auto sizes = std::vector<test::PictureSize>(50, {400, 400, 10});
  sizes[7] = {100, 100, 10};  // too small for the second stage
  const auto index = test::synthetic_index(sizes);
  const Plan plan = plan_of(index, options);
  EXPECT_EQ(plan.items_per_epoch(), 49);
  EXPECT_EQ(plan.coverage().too_small, 1);
}

TEST(StagedBucketsTest, WhatIsHeldOutHasTheShapesOfTheLastStage) {
  auto options = staged();
  options.held_out = 20;
  const auto index = pictures();
  const Plan plan = plan_of(index, options, PlanPart::kHeldOut);
  for (const Item& item : plan.select(0, {}).items) EXPECT_GE(item.bucket, plan.stages()->first_bucket(1));
}

TEST(StagedBucketsTest, EachStageHasItsMicroBatches) {
  const auto index = pictures();
  const Plan plan = plan_of(index, staged());
  PackOptions options{2, 8, test::transformer_work()};
  options.stage_items = {{0, 8}, {plan.stages()->first_bucket(1), 2}};
  const auto largest = [&](int64_t step) {
    size_t most = 0;
    const auto packed = pack(plan.select(step, {}), plan.buckets(), options);
    for (const auto& slots : packed.slots)
      for (const auto& slot : slots) most = std::max(most, slot.items.size());
    return most;
  };
  EXPECT_GT(largest(2), 2U);
  EXPECT_LE(largest(3), 2U);
}

TEST(StagedBucketsTest, AnotherStageIsAnotherRun) {
  const auto index = pictures();
  const auto cursor = plan_of(index, staged()).cursor(2, {});
  plan_of(index, staged()).check_resumable(cursor);
  auto later = staged();
  later.stages[0].from = 4;
  EXPECT_THAT([&] { plan_of(index, later).check_resumable(cursor); },
              ThrowsMessage<InvalidInput>(HasSubstr("settings that decide content")));
  auto larger_batches = staged();
  larger_batches.stages[0].micro_batch_items = 4;
  plan_of(index, larger_batches).check_resumable(cursor);
}

TEST(StagedBucketsTest, ClustersKeepEachItemOnceWhereAStageBeginsInAWindow) {
  auto options = staged();
  options.shape_clusters = 3;
  const auto index = pictures(300);
  const Plan plan = plan_of(index, options);
  std::multiset<int64_t> shown;
  for (int64_t step = 0; step < plan.steps_per_epoch(); ++step)
    for (const Item& item : plan.select(step, {}).items) shown.insert(item.sample);
  EXPECT_EQ(shown.size(), 300U);
  EXPECT_EQ(std::set<int64_t>(shown.begin(), shown.end()).size(), 300U);
}

TEST(StagedBucketsTest, TheReportSaysWhenStagesBegin) {
  const auto index = pictures();
  const auto report = make_report(plan_of(index, staged()), {}, 0, {2, 8, test::transformer_work()});
  ASSERT_EQ(report.stages.size(), 2U);
  EXPECT_EQ(report.stages[0].steps, 3);
  EXPECT_EQ(report.stages[1].steps, report.steps - 3);
  EXPECT_THAT(report.to_table(), HasSubstr("auto of about 64 x 64 pixels from step 3 on: 4 steps"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"from\": 3"));
}

TEST(StagedBucketsTest, MemoryIsThatOfTheLargestMicroBatchOfEachStage) {
  spec::ModelOptions model;
  auto options = staged();
  options.stages[0].micro_batch_items = 5;
  const auto shapes = largest_batches(model, options);
  const auto has = [&](int64_t items, int64_t tokens) {
    return std::any_of(shapes.begin(), shapes.end(), [&](const spec::BatchShape& shape) {
      return shape.items == items && shape.image_tokens == tokens;
    });
  };
  const int64_t side = spec::token_pixels(model);
  EXPECT_TRUE(has(16, 32 * 32 / side / side));  // the whole batch
  EXPECT_TRUE(has(5, 64 * 64 / side / side));
}

}  // namespace
}  // namespace chiliad::stepplan
