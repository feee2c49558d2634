#include "chiliad/train/step_trace.h"
#include "chiliad/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::train {
namespace {

using schedule::Op;

class SetClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override { return time; }
  [[nodiscard]] Nanoseconds wall() const override { return time; }
  Nanoseconds time{0};
};

/// Runs one instruction from `begin` to `end`, in microseconds.
void run(StepTrace& trace, SetClock& clock, const schedule::Instruction& instruction, int begin, int end) {
  clock.time = std::chrono::microseconds(begin);
  trace.before();
  clock.time = std::chrono::microseconds(end);
  trace.after(instruction);
}

TEST(StepTraceTest, AnExchangeIsInFlightFromItsStartToTheEndOfItsWait) {
  test::TempDir folder;
  SetClock clock;
  observe::TraceRecorder recorder(folder.path(), 0, 0, 1, {"embed", "blocks.0"});
  StepTrace trace(&recorder, clock);
  run(trace, clock, {Op::kReduce, 1, -1}, 10, 12);
  run(trace, clock, {Op::kBackward, 0, 0}, 12, 20);
  run(trace, clock, {Op::kAwaitReduce, 1, -1}, 20, 23);
  recorder.write(0);
  const auto page = parse_json<nlohmann::json>(io::read_text(folder.path() / "step-0-rank-0.json", 1 << 20));
  std::vector<nlohmann::json> flight;
  for (const auto& event : page.at("traceEvents")) {
    if (event.at("ph") == "b" || event.at("ph") == "e") flight.push_back(event);
  }
  ASSERT_EQ(flight.size(), 2U);
  EXPECT_EQ(flight[0].at("name"), "reduce blocks.0");
  EXPECT_EQ(flight[0].at("ts"), 10.0);
  EXPECT_EQ(flight[1].at("ts"), 23.0);
}

TEST(StepTraceTest, WithoutARecorderItDoesNothing) {
  SetClock clock;
  StepTrace trace(nullptr, clock);
  run(trace, clock, {Op::kForward, 0, 0}, 1, 2);
}

}  // namespace
}  // namespace chiliad::train
