#include "chiliad/loader/wait_alarm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chiliad::loader {
namespace {

using ::testing::HasSubstr;

/// Steps of a second each, of a loader that is slow for one reason.
class WaitAlarmTest : public ::testing::Test {
 protected:
  std::optional<std::string> steps(int count, double waited, double reading, double decoding,
                                   double blocked = 0.0) {
    std::optional<std::string> told;
    for (int step = 0; step < count; ++step) {
      stats_.threads = 2;
      stats_.prefetch_steps = 4;
      stats_.phase_seconds[static_cast<size_t>(ItemPhase::kReading)] += reading;
      stats_.phase_seconds[static_cast<size_t>(ItemPhase::kDecoding)] += decoding;
      stats_.blocked_seconds += blocked;
      if (auto text = alarm_.add_step(1.0, waited, stats_); text.has_value()) told = text;
    }
    return told;
  }

  WaitAlarm alarm_{0.05, 10};
  LoaderStats stats_;
};

TEST_F(WaitAlarmTest, IsSilentWhereNothingWaits) {
  EXPECT_FALSE(steps(100, 0.01, 0.1, 0.1).has_value());
}

TEST_F(WaitAlarmTest, LeavesTheFirstStepOut) {
  EXPECT_FALSE(steps(1, 1.0, 0.0, 0.0).has_value());
  EXPECT_FALSE(steps(50, 0.0, 0.0, 0.0).has_value());
}

TEST_F(WaitAlarmTest, TellsOnce) {
  EXPECT_TRUE(steps(12, 0.2, 0.1, 1.9).has_value());
  EXPECT_FALSE(steps(100, 0.2, 0.1, 1.9).has_value());
  EXPECT_EQ(alarm_.num_alarms(), 1);
}

TEST_F(WaitAlarmTest, TellsAgainAfterItWasOver) {
  (void)steps(12, 0.2, 0.1, 1.9);
  (void)steps(20, 0.0, 0.1, 0.1);
  EXPECT_TRUE(steps(20, 0.2, 0.1, 1.9).has_value());
}

TEST_F(WaitAlarmTest, NamesDecoding) {
  const auto text = steps(12, 0.2, 0.1, 1.9);
  EXPECT_THAT(text.value(), HasSubstr("waited for data for 20.0 % of the last 10 steps (alarm at 5.0 %)"));
  EXPECT_THAT(text.value(), HasSubstr("bottleneck: decoding. 2 threads are busy decoding: raise "
                                      "data.loader_threads_max"));
}

TEST_F(WaitAlarmTest, NamesReading) {
  EXPECT_THAT(steps(12, 0.2, 1.9, 0.1).value(), HasSubstr("bottleneck: reading"));
}

TEST_F(WaitAlarmTest, NamesTheMemoryBudget) {
  EXPECT_THAT(steps(12, 0.2, 0.1, 0.1, 0.9).value(), HasSubstr("raise data.prefetch_bytes"));
}

TEST_F(WaitAlarmTest, NamesTheStepsAhead) {
  EXPECT_THAT(steps(12, 0.2, 0.1, 0.1).value(), HasSubstr("raise data.prefetch_steps"));
}

}  // namespace
}  // namespace chiliad::loader
