#include "chiliad/supervise/launch/job.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/checkpoint/reader.h"
#include "chiliad/io/faults.h"
#include "chiliad/io/file.h"
#include "chiliad/observe/metrics.h"
#include "chiliad/supervise/launch/run_directory.h"
#include "tests/support/event_reader.h"
#include "tests/support/temp_dir.h"

namespace chiliad::supervise {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// Runs jobs of two fake workers over 10 steps with a checkpoint every 4.
class JobTest : public testing::Test {
 protected:
  JobTest() {
    ::unsetenv("CHILIAD_FAKE_WORKER");
    options_.file = spec::parse_run_file("version: 1\nrun: {steps: 10}\ndata: {index: none}\n", "run.yaml",
                                         "run", {"parallel.nproc=2", "checkpoint.every=4"});
    options_.file.run.dir = (folder_.path() / "run").string();
    options_.run_dir = options_.file.run.dir;
    options_.worker = fs::read_symlink("/proc/self/exe").string();
  }

  JobReport run(const std::string& plan) {
    ::setenv("CHILIAD_FAKE_WORKER", plan.c_str(), 1);
    return run_job(options_, clock_);
  }

  [[nodiscard]] std::vector<int64_t> committed_steps() const {
    std::vector<int64_t> steps;
    for (const auto& entry : checkpoint::list(options_.run_dir / "checkpoints")) {
      if (entry.committed && entry.problem.empty()) steps.push_back(entry.step);
    }
    return steps;
  }

  /// Of all starts, in the order of a reader.
  [[nodiscard]] std::vector<test::ReadEvent> events() const {
    std::set<fs::path> files;
    for (const auto& entry : fs::directory_iterator(options_.run_dir / "tensorboard"))
      files.insert(entry.path());
    std::vector<test::ReadEvent> all;
    for (const auto& file : files) {
      for (auto& event : test::EventReader::read(file)) all.push_back(std::move(event));
    }
    return all;
  }

  /// As a reader keeps them: a marker takes back the steps from its own on.
  [[nodiscard]] std::vector<int64_t> steps_for_tensorboard() const {
    std::vector<int64_t> steps;
    for (const auto& event : events()) {
      if (event.restart) std::erase_if(steps, [&](int64_t step) { return step >= event.step; });
      if (event.scalars.contains("train/loss")) steps.push_back(event.step);
    }
    return steps;
  }

  test::TempDir folder_;
  SystemClock clock_;
  JobOptions options_;
};

TEST_F(JobTest, CommitsCheckpointsAndEndsWell) {
  const auto report = run("");
  EXPECT_EQ(report.exit_code, 0) << report.message;
  EXPECT_EQ(report.reason, "done");
  EXPECT_EQ(report.step, 10);
  EXPECT_EQ(committed_steps(), (std::vector<int64_t>{10, 8}));
}

TEST_F(JobTest, TheCheckpointHoldsWhatTheRanksGave) {
  const auto report = run("");
  const auto opened = checkpoint::Checkpoint::open(report.last_checkpoint);
  EXPECT_NO_THROW(opened.verify());
  EXPECT_EQ(opened.num_ranks(), 2);
  EXPECT_EQ(opened.config(), spec::to_yaml(options_.file));
}

TEST_F(JobTest, WritesALineOfMetricsForEachFrame) {
  (void)run("");
  std::ifstream in(options_.run_dir / "metrics.jsonl");
  std::string line;
  int64_t steps = 0;
  while (std::getline(in, line)) EXPECT_EQ(observe::StepMetrics::from_json(line).step, ++steps);
  EXPECT_EQ(steps, 10);
}

TEST_F(JobTest, EveryStepHasOneValueForTensorBoardAlsoAfterAResume) {
  (void)run("kill:1:6");
  (void)run("");
  const auto steps = steps_for_tensorboard();
  EXPECT_EQ(steps.size(), 10U);
  EXPECT_EQ(std::set<int64_t>(steps.begin(), steps.end()).size(), 10U);
}

TEST_F(JobTest, ShowsNewSamplesInEventFiles) {
  (void)run("sample:0:5");
  std::map<int64_t, std::string> samples;
  for (const auto& event : events()) {
    for (const auto& [tag, png] : event.pngs) samples[event.step] = png;
  }
  EXPECT_EQ(samples, (std::map<int64_t, std::string>{{5, "a picture"}}));
}

TEST_F(JobTest, EventFilesCanBeSwitchedOff) {
  options_.file.observe.tensorboard = false;
  (void)run("");
  EXPECT_FALSE(fs::exists(options_.run_dir / "tensorboard"));
}

TEST_F(JobTest, AFinishedRunSaysSo) {
  (void)run("");
  const auto report = run("");
  EXPECT_EQ(report.reason, "finished");
  EXPECT_EQ(report.exit_code, 0);
}

TEST_F(JobTest, AKilledWorkerIsNamedAndTheOthersEnd) {
  const auto report = run("kill:1:6");
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(report.message, "rank 1 died at step 6 in phase forward: signal 9 (Killed)");
  EXPECT_THAT(io::read_text(report.incident, 1 << 20), HasSubstr("rank 1 died at step 6"));
}

TEST_F(JobTest, GoesOnAfterAKilledWorker) {
  (void)run("kill:1:6");
  const auto report = run("");
  EXPECT_EQ(report.exit_code, 0) << report.message;
  EXPECT_EQ(report.resumed_from, 4);
}

TEST_F(JobTest, AWorkersErrorDecidesTheExitCode) {
  const auto report = run("error:0:5");
  EXPECT_EQ(report.exit_code, 3);
  EXPECT_EQ(report.message, "rank 0 failed at step 5: a.tar: torn");
}

TEST_F(JobTest, AHangEndsTheJobWithTheStuckRanks) {
  options_.file.supervise.hang_timeout_s = 1.0;
  const auto report = run("hang:0:3");
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_THAT(report.message, HasSubstr("nobody is behind: ranks 0, 1 are at step 3, forward"));
}

TEST_F(JobTest, SealsASnapshotThatADeadWorkerDidNotReport) {
  const auto report = run("unreported:1:8");
  EXPECT_EQ(report.exit_code, 4);
  EXPECT_EQ(committed_steps().front(), 8);
}

TEST_F(JobTest, SigtermSavesAndLeaves) {
  const auto report = run("term:0:5");
  EXPECT_EQ(report.reason, "stopped");
  EXPECT_EQ(report.exit_code, 0) << report.message;
  EXPECT_EQ(committed_steps().front(), 6);
}

TEST_F(JobTest, ASecondJobIsRefused) {
  const auto lock = RunDirectory(options_.run_dir).take();
  EXPECT_THROW((void)run(""), InvalidInput);
}

TEST_F(JobTest, OtherSettingsAreRefusedOnResume) {
  (void)run("term:0:5");
  options_.file.model.width = 128;
  try {
    (void)run("");
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.width was 256, is now 128"));
  }
}

TEST_F(JobTest, ADamagedCheckpointIsSkippedForAnOlderOne) {
  const auto first = run("");
  fs::resize_file(fs::path(first.last_checkpoint) / "manifest.json", 10);
  const auto report = run("");
  EXPECT_EQ(report.exit_code, 0) << report.message;
  EXPECT_EQ(report.resumed_from, 8);
}

TEST_F(JobTest, StopsWhereAllCheckpointsAreDamaged) {
  (void)run("");
  for (const auto& entry : checkpoint::list(options_.run_dir / "checkpoints")) {
    fs::resize_file(entry.path / "manifest.json", 10);
  }
  EXPECT_THROW((void)run(""), CorruptData);
}

TEST_F(JobTest, FromScratchSetsDamagedOnesAside) {
  (void)run("");
  for (const auto& entry : checkpoint::list(options_.run_dir / "checkpoints")) {
    fs::resize_file(entry.path / "manifest.json", 10);
  }
  options_.from_scratch = true;
  const auto report = run("");
  EXPECT_EQ(report.exit_code, 0) << report.message;
  EXPECT_EQ(report.resumed_from, -1);
}

#ifdef CHILIAD_FAULTS
TEST_F(JobTest, AFullDiskCostsTheCheckpointNotTheTraining) {
  io::ScopedFaultHook full([](io::FileOp op, const std::string& path) {
    const bool hit = op == io::FileOp::kWrite && path.find("step-10.") != std::string::npos;
    return hit ? io::FaultAction{ENOSPC, true} : io::FaultAction{};
  });
  options_.file.checkpoint.timeout_s = 5;  // so long the last one is tried again
  const auto report = run("");
  EXPECT_EQ(report.step, 10);
  EXPECT_EQ(report.exit_code, 1);
  EXPECT_THAT(report.message, HasSubstr("No space left on device"));
  EXPECT_EQ(committed_steps(), (std::vector<int64_t>{8, 4}));
}

TEST_F(JobTest, AFullDiskInBetweenIsMadeUpFor) {
  io::ScopedFaultHook full([](io::FileOp op, const std::string& path) {
    const bool hit = op == io::FileOp::kWrite && path.find("step-8.") != std::string::npos;
    return hit ? io::FaultAction{ENOSPC, true} : io::FaultAction{};
  });
  EXPECT_EQ(run("").exit_code, 0);
}
#endif

}  // namespace
}  // namespace chiliad::supervise
