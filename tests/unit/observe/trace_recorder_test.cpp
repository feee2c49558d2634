#include "chiliad/observe/trace_recorder.h"
#include "chiliad/base/json_text.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

namespace chiliad::observe {
namespace {

using Json = nlohmann::json;

Nanoseconds micros(int64_t count) {
  return std::chrono::microseconds(count);
}

Json read(const std::filesystem::path& path) {
  return parse_json<Json>(io::read_text(path, 1 << 28));
}

/// Those that are no names of tracks.
std::vector<Json> spans(const Json& page) {
  std::vector<Json> all;
  for (const auto& event : page.at("traceEvents")) {
    if (event.at("ph") != "M") all.push_back(event);
  }
  return all;
}

TEST(TraceRecorderTest, WantsItsSteps) {
  const TraceRecorder trace("trace", 0, 5, 2, {});
  EXPECT_FALSE(trace.wants(4));
  EXPECT_TRUE(trace.wants(5));
  EXPECT_TRUE(trace.wants(6));
  EXPECT_FALSE(trace.wants(7));
}

TEST(TraceRecorderTest, WritesACompleteEventForASpan) {
  test::TempDir folder;
  TraceRecorder trace(folder.path(), 3, 0, 1, {"embed", "blocks.0"});
  trace.add({"forward", kStepTrack, micros(10), micros(14), 1, 2, false});
  trace.write(0);
  const Json event = spans(read(folder.path() / "step-0-rank-3.json")).at(0);
  EXPECT_EQ(event.at("name"), "forward blocks.0");
  EXPECT_EQ(event.at("ph"), "X");
  EXPECT_EQ(event.at("ts"), 10.0);
  EXPECT_EQ(event.at("dur"), 4.0);
  EXPECT_EQ(event.at("pid"), 3);
  EXPECT_EQ(event.at("args").at("layer"), 1);
  EXPECT_EQ(event.at("args").at("slot"), 2);
}

TEST(TraceRecorderTest, SpansThatOverlapArePairsOfTheirOwn) {
  test::TempDir folder;
  TraceRecorder trace(folder.path(), 0, 0, 1, {});
  trace.add({"gather", kFlightTrack, micros(1), micros(9), 0, -1, true});
  trace.add({"gather", kFlightTrack, micros(2), micros(5), 1, -1, true});
  trace.write(0);
  const auto events = spans(read(folder.path() / "step-0-rank-0.json"));
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].at("ph"), "b");
  EXPECT_EQ(events[1].at("ph"), "e");
  EXPECT_EQ(events[1].at("ts"), 9.0);
  EXPECT_EQ(events[0].at("id"), events[1].at("id"));
  EXPECT_NE(events[0].at("id"), events[2].at("id"));
}

TEST(TraceRecorderTest, NamesRankAndTracks) {
  test::TempDir folder;
  TraceRecorder trace(folder.path(), 1, 0, 1, {});
  trace.add({"load", kStepTrack, micros(1), micros(2), -1, 0, false});
  trace.write(0);
  const Json page = read(folder.path() / "step-0-rank-1.json");
  EXPECT_EQ(page.at("traceEvents").at(0).at("args").at("name"), "rank 1");
  EXPECT_EQ(page.at("traceEvents").at(1).at("args").at("name"), kStepTrack);
}

TEST(TraceRecorderTest, AStepHoldsNothingOfTheOneBefore) {
  test::TempDir folder;
  TraceRecorder trace(folder.path(), 0, 0, 2, {});
  trace.add({"load", kStepTrack, micros(1), micros(2), -1, 0, false});
  trace.write(0);
  trace.write(1);
  EXPECT_TRUE(spans(read(folder.path() / "step-1-rank-0.json")).empty());
}

TEST(TraceRecorderTest, CountsWhatIsBeyondItsMemory) {
  test::TempDir folder;
  TraceRecorder trace(folder.path(), 0, 0, 1, {});
  for (size_t i = 0; i < TraceRecorder::kMaxSpans + 3; ++i)
    trace.add({"load", kStepTrack, micros(1), micros(2), -1, 0, false});
  trace.write(0);
  EXPECT_EQ(read(folder.path() / "step-0-rank-0.json").at("otherData").at("left_out"), 3);
}

}  // namespace
}  // namespace chiliad::observe
