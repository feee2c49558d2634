#include "chiliad/observe/terminal_progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace chiliad::observe {
namespace {

class FakeClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return time_; }
  [[nodiscard]] Nanoseconds wall() const override { return time_; }
  void advance(Nanoseconds by) { time_ += by; }

 private:
  Nanoseconds time_{0};
};

TEST(TerminalProgressTest, LinesComeNowAndThen) {
  FakeClock clock;
  std::ostringstream out;
  TerminalProgress progress(out, ProgressStyle::kLines, clock, {.label = "train"});
  for (int step = 0; step <= 12; ++step) {
    progress.update(step, 100, "loss 1");
    clock.advance(std::chrono::seconds(1));
  }
  EXPECT_EQ(out.str(),
            "train 5/100 (5%), 1 steps/s, 1 min 35 s left, loss 1\n"
            "train 10/100 (10%), 1 steps/s, 1 min 30 s left, loss 1\n");
}

TEST(TerminalProgressTest, RateOfAResumedRunCountsItsOwnSteps) {
  FakeClock clock;
  std::ostringstream out;
  TerminalProgress progress(out, ProgressStyle::kLines, clock, {.label = "train"});
  progress.update(1000, 2000, "");
  clock.advance(std::chrono::seconds(10));
  progress.update(1020, 2000, "");
  EXPECT_EQ(out.str(), "train 1020/2000 (51%), 2 steps/s, 8 min 10 s left\n");
}

TEST(TerminalProgressTest, QuietPrintsNothing) {
  FakeClock clock;
  std::ostringstream out;
  TerminalProgress progress(out, ProgressStyle::kQuiet, clock, {.label = "train"});
  clock.advance(std::chrono::seconds(60));
  progress.update(1, 2, "");
  progress.finish();
  EXPECT_EQ(out.str(), "");
}

TEST(TerminalProgressTest, BarIsTakenAwayBeforeOtherOutput) {
  FakeClock clock;
  std::ostringstream out;
  TerminalProgress progress(out, ProgressStyle::kBar, clock, {.label = "train"});
  progress.update(1, 2, "");
  progress.clear();
  EXPECT_TRUE(out.str().ends_with("\r\033[K"));
}

}  // namespace
}  // namespace chiliad::observe
