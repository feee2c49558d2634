#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

using observe::Row;

constexpr double kSleep = 0.045;  // of 50 ms that were asked for

/// A sleep in every phase of a row must be charged to that row of every step, and to no other.
class TimeAccountTest : public testing::TestWithParam<Row> {
 protected:
  static void SetUpTestSuite() {
    job_ = std::make_unique<TrainJob>(4);
    ASSERT_EQ(job_->train("plain", 1, {}, kSaveAlways).exit_code, 0);
  }
  static void TearDownTestSuite() { job_.reset(); }

  /// The least time of a row over the steps: one slow step of a busy machine does not matter.
  [[nodiscard]] static double least(const std::string& run, Row row) {
    double seconds = 1e9;
    for (const auto& [step, metrics] : job_->metrics(run)) {
      seconds = std::min(seconds, metrics.seconds[static_cast<size_t>(row)]);
    }
    return seconds;
  }

  static inline const std::vector<std::string> kSaveAlways{"--set", "checkpoint.every=1"};
  static inline std::unique_ptr<TrainJob> job_;
};

TEST_P(TimeAccountTest, ADelayAppearsInItsRowOnly) {
  const std::string name = observe::row_name(GetParam());
  const auto result =
      job_->train(name, 1, {{"CHILIAD_DELAY_ROW", name}, {"CHILIAD_DELAY_MS", "50"}}, kSaveAlways);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GE(least(name, GetParam()) - least("plain", GetParam()), kSleep);
  for (int row = 0; row < observe::kNumRows; ++row) {
    if (row == static_cast<int>(GetParam())) continue;
    EXPECT_LT(least(name, static_cast<Row>(row)) - least("plain", static_cast<Row>(row)), kSleep)
        << observe::row_name(static_cast<Row>(row));
  }
}

TEST(TimeAccountSumTest, RowsAddUpToTheWall) {
  const TrainJob job(4);
  ASSERT_EQ(job.train("run", 1).exit_code, 0);
  for (const auto& [step, metrics] : job.metrics("run")) {
    double sum = metrics.other;
    for (const double seconds : metrics.seconds) sum += seconds;
    EXPECT_NEAR(sum, metrics.wall, 1e-6) << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, TimeAccountTest,
                         testing::Values(Row::kDataWait, Row::kHostToDevice, Row::kForward, Row::kBackward,
                                         Row::kCommunication, Row::kOptimizer, Row::kCheckpoint));

}  // namespace
}  // namespace chiliad::test
