#include "chiliad/observe/time_account.h"

#include <gtest/gtest.h>

#include <numeric>

namespace chiliad::observe {
namespace {

class FakeClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return time_; }
  [[nodiscard]] Nanoseconds wall() const override { return time_; }
  void advance(int seconds) { time_ += std::chrono::seconds(seconds); }

 private:
  Nanoseconds time_{std::chrono::seconds(100)};
};

TEST(TimeAccountTest, InnerScopeIsNotChargedToOuter) {
  FakeClock clock;
  TimeAccount account(clock);
  {
    TimeAccount::Scope outer(account, Row::kBackward);
    clock.advance(2);
    {
      TimeAccount::Scope inner(account, Row::kCommunication);
      clock.advance(3);
    }
    clock.advance(4);
  }
  const auto report = account.close_step();
  EXPECT_DOUBLE_EQ(report.seconds[static_cast<size_t>(Row::kBackward)], 6.0);
  EXPECT_DOUBLE_EQ(report.seconds[static_cast<size_t>(Row::kCommunication)], 3.0);
}

TEST(TimeAccountTest, PartsAddUpToWall) {
  FakeClock clock;
  TimeAccount account(clock);
  clock.advance(1);
  {
    TimeAccount::Scope scope(account, Row::kForward);
    clock.advance(5);
  }
  clock.advance(2);
  const auto report = account.close_step();
  EXPECT_DOUBLE_EQ(report.wall, 8.0);
  EXPECT_DOUBLE_EQ(report.other, 3.0);
  EXPECT_DOUBLE_EQ(std::accumulate(report.seconds.begin(), report.seconds.end(), report.other), report.wall);
}

TEST(TimeAccountTest, NextStepStartsAtZero) {
  FakeClock clock;
  TimeAccount account(clock);
  {
    TimeAccount::Scope scope(account, Row::kForward);
    clock.advance(5);
  }
  (void)account.close_step();
  clock.advance(1);
  const auto report = account.close_step();
  EXPECT_DOUBLE_EQ(report.wall, 1.0);
  EXPECT_DOUBLE_EQ(report.seconds[static_cast<size_t>(Row::kForward)], 0.0);
}

}  // namespace
}  // namespace chiliad::observe
