// What a run shows of itself: event files, traces, MFU, its report, and what a step will see.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/support/event_reader.h"
#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;
using testing::Not;

constexpr int64_t kSteps = 10;

ProgramResult chiliad(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CHILIAD_BIN_DIR "/chiliad");
  return Program(arguments, {}).wait();
}

std::string read(const fs::path& path) {
  return io::read_text(path, 1 << 28);
}

std::vector<fs::path> files(const fs::path& folder) {
  std::vector<fs::path> all;
  for (const auto& entry : fs::directory_iterator(folder)) all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// One run of two ranks that stops after step 6 by a kill of a worker and goes on: its files are looked at by
/// all tests.
class SeeingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    job_ = std::make_unique<TrainJob>(kSteps);
    const std::vector<std::string> trace{"--set", "observe.trace_from=1", "--set", "observe.trace_steps=2"};
    ASSERT_EQ(job_->train("run", 2, {{"CHILIAD_KILL_AT", "1:6:backward"}}, trace).exit_code, 4);
    const auto resumed = job_->train("run", 2, {}, trace);
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    said_ = resumed.err;
  }
  static void TearDownTestSuite() { job_.reset(); }
  [[nodiscard]] static fs::path run() { return job_->run_dir("run"); }

  static inline std::unique_ptr<TrainJob> job_;
  static inline std::string said_;
};

TEST_F(SeeingTest, EveryStepHasOneValueForTensorBoard) {
  // As TensorBoard reads: files by name; a marker takes back what came before from its step on.
  std::map<int64_t, float> loss;
  const auto starts = files(run() / "tensorboard");
  EXPECT_EQ(starts.size(), 2U);
  for (const auto& file : starts) {
    for (const auto& event : EventReader::read(file)) {
      if (event.restart) loss.erase(loss.lower_bound(event.step), loss.end());
      const auto found = event.scalars.find("train/loss");
      if (found == event.scalars.end()) continue;
      EXPECT_TRUE(loss.emplace(event.step, found->second).second) << event.step;
    }
  }
  EXPECT_EQ(loss.size(), static_cast<size_t>(kSteps));
  for (const auto& [step, line] : job_->metrics("run"))
    EXPECT_EQ(loss.at(step), static_cast<float>(line.loss)) << step;
}

TEST_F(SeeingTest, MfuIsAShareOfTheMeasuredPeak) {
  for (const auto& [step, line] : job_->metrics("run")) {
    ASSERT_GT(line.peak_flops, 0.0);
    ASSERT_TRUE(line.mfu.has_value());
    EXPECT_NEAR(*line.mfu, line.flops / line.wall / line.peak_flops, 1e-9);
    EXPECT_GT(*line.mfu, 0.0);
  }
}

TEST_F(SeeingTest, TheProgressLineNamesMfu) {
  EXPECT_THAT(said_, HasSubstr(", MFU "));
}

TEST_F(SeeingTest, TracesHoldEveryKindOfWorkOfTheirSteps) {
  for (const int step : {1, 2}) {
    for (const int rank : {0, 1}) {
      const auto path = run() / "trace" / fmt::format("step-{}-rank-{}.json", step, rank);
      const Json page = parse_json<Json>(read(path));
      std::set<std::string> kinds;
      for (const auto& event : page.at("traceEvents"))
        if (event.contains("cat")) kinds.insert(event.at("cat").get<std::string>());
      for (const char* kind : {"wait for data", "load", "forward", "backward", "reduce_replicas", "optimize"})
        EXPECT_EQ(kinds.count(kind), 1U) << kind << " in " << path;
    }
  }
}

TEST_F(SeeingTest, OnlyTheAskedStepsAreTraced) {
  EXPECT_EQ(files(run() / "trace").size(), 4U);
}

TEST_F(SeeingTest, TheReportTellsOfTheWholeRun) {
  const auto out = job_->run_dir("page.html");
  const auto result = chiliad({"report", run().string(), "--out", out.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json said = parse_json<Json>(result.out);
  EXPECT_EQ(said.at("state"), "finished");
  EXPECT_EQ(said.at("step"), kSteps);
  EXPECT_EQ(said.at("resumes"), 1);
  EXPECT_EQ(said.at("incidents"), 1);
  EXPECT_TRUE(said.at("problems").empty()) << json_text(said);
  const auto page = read(out);
  for (const char* part : {"<figcaption>Loss</figcaption>", "Where the time went", "in the order of the run",
                           "rank 1", "committed", "resumed at step", "Run file, resolved"})
    EXPECT_THAT(page, HasSubstr(part));
}

TEST_F(SeeingTest, TheReportLiesInTheRunDirectoryWhereNoPlaceIsNamed) {
  ASSERT_EQ(chiliad({"report", run().string()}).exit_code, 0);
  EXPECT_TRUE(fs::exists(run() / "report.html"));
}

TEST_F(SeeingTest, AFolderThatIsNoRunIsWrongUse) {
  const auto result = chiliad({"report", job_->pictures().string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("expected a run directory"));
}

TEST_F(SeeingTest, ShowsTheItemsThatTheStepConsumed) {
  const auto out = job_->run_dir("step.html");
  const auto result = chiliad({"data", "show", (run() / "run.yaml").string(), "--step", "3", "--ranks", "2",
                               "--out", out.string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const Json said = parse_json<Json>(result.out);
  EXPECT_EQ(said.at("items"), 5);  // the last step of a window holds what is left
  EXPECT_EQ(said.at("digest"), job_->ledger("run").at(3));
  const auto page = read(out);
  EXPECT_THAT(page, HasSubstr("Rank 1:"));
  EXPECT_THAT(page, HasSubstr("data:image/png;base64,"));
}

TEST_F(SeeingTest, EventFilesCanBeSwitchedOff) {
  ASSERT_EQ(
      job_->train("plain", 1, {}, {"--set", "observe.tensorboard=false", "--set", "run.steps=2"}).exit_code,
      0);
  EXPECT_FALSE(fs::exists(job_->run_dir("plain") / "tensorboard"));
  EXPECT_FALSE(fs::exists(job_->run_dir("plain") / "trace"));
}

}  // namespace
}  // namespace chiliad::test
