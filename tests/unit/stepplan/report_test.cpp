#include "chiliad/stepplan/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/support/synthetic_index.h"

namespace chiliad::stepplan {
namespace {

using ::testing::HasSubstr;

/// 300 squares and one picture four times as wide as high.
index::Index with_a_small_bucket() {
  std::vector<test::PictureSize> sizes(301, {100, 100, 10});
  sizes[150] = {400, 100, 10};
  return test::synthetic_index(sizes);
}

PlanReport report_of(const index::Index& index, const spec::DataOptions& data, const PackOptions& options) {
  const Plan plan(index, data, 1, test::byte_tokens(index));
  return make_report(plan, {}, 0, options);
}

PackOptions of_ranks(int ranks) {
  return {ranks, 32, test::transformer_work()};
}

TEST(ReportTest, ABucketOfOnePictureIsShown) {
  const auto report = report_of(with_a_small_bucket(), {}, of_ranks(4));
  ASSERT_EQ(report.buckets.size(), 2U);
  EXPECT_EQ(report.buckets[0].items + report.buckets[1].items, 301);
  EXPECT_EQ(report.buckets[1].bucket, (Bucket{64, 16}));
  EXPECT_EQ(report.buckets[1].items, 1);
  EXPECT_EQ(report.buckets[1].steps, 1);
  EXPECT_EQ(report.missed, 0);
  EXPECT_EQ(report.repeated, 0);
}

TEST(ReportTest, CountsWhatABucketsRecipeRefuses) {
  spec::DataOptions data;
  data.buckets = "opensora-144p";
  auto sizes = std::vector<test::PictureSize>(50, {200, 200, 10});
  sizes[7] = {90, 90, 10};
  const auto report = report_of(test::synthetic_index(sizes), data, of_ranks(2));
  EXPECT_EQ(report.coverage.too_small, 1);
  EXPECT_EQ(report.items, 49);
  EXPECT_THAT(report.to_table(), HasSubstr("1 too small"));
  EXPECT_THAT(report.to_json(), HasSubstr("\"too_small\": 1"));
}

TEST(ReportTest, SaysWhatPaddingCosts) {
  auto options = of_ranks(2);
  options.pad = true;
  const auto report = report_of(with_a_small_bucket(), {}, options);
  EXPECT_GT(report.padded_pixels, 0);
  EXPECT_THAT(report.to_table(), HasSubstr("% of "));
  EXPECT_EQ(report_of(with_a_small_bucket(), {}, of_ranks(2)).padded_pixels, 0);
}

TEST(ReportTest, CountsSlotsWhereRanksWaitThere) {
  auto options = of_ranks(3);
  options.sync = Sync::kSlot;
  const auto report = report_of(with_a_small_bucket(), {}, options);
  EXPECT_THAT(report.to_json(), HasSubstr("\"at\": \"slot\""));
  EXPECT_GE(report.balance_worst + 0.001, report.balance_bound_worst);
}

TEST(ReportTest, NamesComponents) {
  auto options = of_ranks(4);
  options.components = {"text", "picture"};
  options.component_work = [](Bucket bucket, int64_t items, int64_t tokens) {
    const auto count = static_cast<double>(items);
    return Works{0.01 * count * static_cast<double>(tokens), count * bucket.width * bucket.height / 1000.0};
  };
  const auto report = report_of(with_a_small_bucket(), {}, options);
  ASSERT_EQ(report.components.size(), 2U);
  EXPECT_EQ(report.components[1].name, "picture");
  EXPECT_GE(report.components[1].worst, 1.0);
  EXPECT_THAT(report.to_table(), HasSubstr("  picture"));
}

TEST(ReportTest, ProgressReachesItsEnd) {
  const auto index = with_a_small_bucket();
  const Plan plan(index, {}, 1, test::byte_tokens(index));
  int64_t last = -1;
  (void)make_report(plan, {}, 0, of_ranks(2), [&](int64_t done, int64_t total) {
    EXPECT_GE(done, last);
    EXPECT_EQ(total, plan.steps_per_epoch());
    last = done;
  });
  EXPECT_EQ(last, plan.steps_per_epoch());
}

}  // namespace
}  // namespace chiliad::stepplan
