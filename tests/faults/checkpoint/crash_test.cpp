#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/crash_model.h"

namespace chiliad::checkpoint {
namespace {

TEST(CrashTest, KilledBeforeAnyOperationLeavesOldOrNew) {
  const test::CrashReport report = test::crash_at_every_operation(std::nullopt);
  EXPECT_GE(report.num_cases, 80);
  EXPECT_THAT(report.violations, testing::IsEmpty());
}

class PowerLossTest : public testing::TestWithParam<uint64_t> {};

TEST_P(PowerLossTest, LeavesOldOrNew) {
  const test::CrashReport report = test::crash_at_every_operation(GetParam());
  EXPECT_GE(report.num_cases, 80);
  EXPECT_THAT(report.violations, testing::IsEmpty()) << "seed " << GetParam();
}

INSTANTIATE_TEST_SUITE_P(Seeds, PowerLossTest, testing::Values(1, 2, 3));

}  // namespace
}  // namespace chiliad::checkpoint
