#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kSteps = 12;
/// Slows a run down, so that it is still there when something is done to it.
const Program::Environment kSlow{{"CHILIAD_DELAY_ROW", "data_wait"}, {"CHILIAD_DELAY_MS", "300"}};

class LifecycleTest : public testing::Test {
 protected:
  /// Waits until the run has done a step.
  [[nodiscard]] bool has_begun(const std::string& run) const {
    return poll_until(std::chrono::seconds(60), [&] { return !job_.metrics(run).empty(); });
  }

  TrainJob job_{kSteps};
};

TEST_F(LifecycleTest, TwoRunsAreBitIdentical) {
  ASSERT_EQ(job_.train("one", 2).exit_code, 0);
  ASSERT_EQ(job_.train("two", 2).exit_code, 0);
  EXPECT_EQ(weight_difference(job_, "one", "two"), "");
}

TEST_F(LifecycleTest, EveryStepHasALineOfMetricsAndLedger) {
  ASSERT_EQ(job_.train("run", 2).exit_code, 0);
  EXPECT_EQ(std::ssize(job_.metrics("run")), kSteps);
  EXPECT_EQ(std::ssize(job_.ledger("run")), kSteps);
}

TEST_F(LifecycleTest, ANumberOfProcessesMayChangeOnResume) {
  ASSERT_EQ(job_.train("reference", 2).exit_code, 0);
  ASSERT_EQ(job_.train("run", 2, {}, {"--set", "run.steps=4"}).exit_code, 0);
  ASSERT_EQ(job_.train("run", 3, {}, {"--set", "run.steps=8"}).exit_code, 0);
  const auto last = job_.train("run", 1);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(ledger_difference(job_, "reference", "run"), "");
  const auto want = job_.metrics("reference");
  for (const auto& [step, metrics] : job_.metrics("run")) {
    EXPECT_NEAR(metrics.loss, want.at(step).loss, 1e-4 * std::abs(want.at(step).loss)) << step;
  }
}

TEST_F(LifecycleTest, ResolutionsByStepSurviveAChangeOfProcesses) {
  const auto with = [](const char* steps) {
    std::vector<std::string> all{"--set",
                                 "data.stages=[{from: 3, resolution: 48, bucket_max: 96}, {from: 7, "
                                 "resolution: 64, bucket_max: 128}]"};
    if (steps != nullptr) all.insert(all.end(), {"--set", steps});
    return all;
  };
  const auto reference = job_.train("reference", 2, {}, with(nullptr));
  ASSERT_EQ(reference.exit_code, 0) << reference.err;
  ASSERT_EQ(job_.train("run", 2, {}, with("run.steps=4")).exit_code, 0);
  ASSERT_EQ(job_.train("run", 3, {}, with("run.steps=8")).exit_code, 0);
  const auto last = job_.train("run", 1, {}, with(nullptr));
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(ledger_difference(job_, "reference", "run"), "");
  const auto want = job_.metrics("reference");
  for (const auto& [step, metrics] : job_.metrics("run")) {
    EXPECT_NEAR(metrics.loss, want.at(step).loss, 1e-4 * std::abs(want.at(step).loss)) << step;
  }
}

// Also out of and into a layout in which a rank owns several boxes of a fused tensor.
TEST_F(LifecycleTest, ALayoutMayChangeOnResume) {
  ASSERT_EQ(job_.train("reference", 1).exit_code, 0);
  const std::vector<std::string> shared{"--set", "parallel.tp=2", "--set", "parallel.dp_shard=2"};
  auto with_steps = [&](const char* steps) {
    auto all = shared;
    all.insert(all.end(), {"--set", steps});
    return all;
  };
  const auto first = job_.train("run", 4, {}, with_steps("run.steps=4"));
  ASSERT_EQ(first.exit_code, 0) << first.err;
  ASSERT_EQ(job_.train("run", 1, {}, {"--set", "run.steps=8"}).exit_code, 0);
  const auto last = job_.train("run", 4, {}, shared);
  ASSERT_EQ(last.exit_code, 0) << last.err;
  EXPECT_EQ(ledger_difference(job_, "reference", "run"), "");
  const auto want = job_.metrics("reference");
  for (const auto& [step, metrics] : job_.metrics("run")) {
    EXPECT_NEAR(metrics.loss, want.at(step).loss, 1e-4 * std::abs(want.at(step).loss)) << step;
  }
  Program verify({CHILIAD_BIN_DIR "/chiliad", "ckpt", "verify", job_.run_dir("run").string()}, {});
  EXPECT_EQ(verify.wait().exit_code, 0);
}

class SignalTest : public LifecycleTest, public testing::WithParamInterface<int> {};

TEST_P(SignalTest, SavesAndLeavesAndResumes) {
  ASSERT_EQ(job_.train("reference", 2).exit_code, 0);
  const auto program = job_.start("run", 2, kSlow);
  ASSERT_TRUE(has_begun("run"));
  if (GetParam() == SIGINT) {  // a terminal sends it to all
    for (const pid_t pid : job_.processes("run")) ::kill(pid, SIGINT);
  } else {
    program->signal(GetParam());
  }
  const auto stopped = program->wait();
  ASSERT_EQ(stopped.exit_code, 0) << stopped.err;
  ASSERT_EQ(std::ssize(job_.committed_steps("run")), 1);
  EXPECT_LT(job_.committed_steps("run").front(), kSteps);
  ASSERT_EQ(job_.train("run", 2).exit_code, 0);
  EXPECT_EQ(ledger_difference(job_, "reference", "run"), "");
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

INSTANTIATE_TEST_SUITE_P(Signals, SignalTest, testing::Values(SIGTERM, SIGINT));

TEST_F(LifecycleTest, WorkersGoWithAKilledParent) {
  const auto program = job_.start("run", 2, kSlow);
  ASSERT_TRUE(has_begun("run"));
  ASSERT_EQ(std::ssize(job_.processes("run")), 3);
  program->signal(SIGKILL);
  EXPECT_EQ(program->wait().exit_code, -SIGKILL);
  EXPECT_TRUE(poll_until(std::chrono::seconds(2), [&] { return job_.processes("run").empty(); }));
}

TEST_F(LifecycleTest, ASecondJobInTheDirectoryIsRefused) {
  const auto first = job_.start("run", 1, kSlow);
  ASSERT_TRUE(has_begun("run"));
  const auto second = job_.train("run", 1);
  EXPECT_EQ(second.exit_code, 2);
  EXPECT_THAT(second.err,
              HasSubstr("another job is using this run directory: pid " + std::to_string(first->pid())));
  EXPECT_EQ(first->wait().exit_code, 0);
}

TEST_F(LifecycleTest, ACheckpointCutShortIsNamedAndTheOlderOneUsed) {
  ASSERT_EQ(job_.train("reference", 2).exit_code, 0);
  ASSERT_EQ(job_.train("run", 2, {}, {"--set", "run.steps=8"}).exit_code, 0);
  const auto newest = job_.run_dir("run") / "checkpoints" / "step-8.g0";
  fs::resize_file(newest / "model" / "rank-00001.safetensors", 4200);
  const auto resumed = job_.train("run", 2);
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr(newest.string() + " cannot be used and is skipped"));
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

TEST_F(LifecycleTest, AFullDiskCostsACheckpointInTheMiddleAlone) {
  ASSERT_EQ(job_.train("reference", 1).exit_code, 0);
  const auto full = job_.train("run", 1, {{"CHILIAD_FILE_FAULT", "write:checkpoints/step-4:1:ENOSPC"}},
                               {"--set", "run.steps=8"});
  EXPECT_EQ(full.exit_code, 0) << full.err;
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  EXPECT_EQ(job_.committed_steps("run"), std::vector<int64_t>{8});
  ASSERT_EQ(job_.train("run", 1).exit_code, 0);
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

TEST_F(LifecycleTest, WhatCouldNotBeSavedAtTheEndIsSavedAgain) {
  ASSERT_EQ(job_.train("reference", 2, {}, {"--set", "run.steps=8"}).exit_code, 0);
  const auto full = job_.train("run", 2, {{"CHILIAD_FILE_FAULT", "write:checkpoints/step-8:1-1:ENOSPC"}},
                               {"--set", "run.steps=8"});
  EXPECT_EQ(full.exit_code, 0) << full.err;
  EXPECT_THAT(full.err, HasSubstr("No space left on device"));
  EXPECT_THAT(full.err, HasSubstr("step 8 is still in memory: saving it again"));
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

TEST_F(LifecycleTest, ADiskThatStaysFullCostsTheCheckpointAndNothingElse) {
  ASSERT_EQ(job_.train("reference", 1).exit_code, 0);
  const auto full = job_.train("run", 1, {{"CHILIAD_FILE_FAULT", "write:checkpoints/step-8:1:ENOSPC"}},
                               {"--set", "run.steps=8", "--set", "checkpoint.timeout_s=2"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.err, HasSubstr("the last checkpoint (step 8) could not be written"));
  EXPECT_EQ(job_.committed_steps("run"), std::vector<int64_t>{4});
  ASSERT_EQ(job_.train("run", 1).exit_code, 0);
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

TEST_F(LifecycleTest, MoreProcessesThanItemsLoseNothing) {
  const std::vector<std::string> few{"--set", "data.batch=2"};
  ASSERT_EQ(job_.train("one", 1, {}, few).exit_code, 0);
  const auto three = job_.train("three", 3, {}, few);
  ASSERT_EQ(three.exit_code, 0) << three.err;
  EXPECT_EQ(ledger_difference(job_, "one", "three"), "");
  for (const auto& [step, metrics] : job_.metrics("three")) EXPECT_EQ(metrics.bad_items, 0) << step;
}

}  // namespace
}  // namespace chiliad::test
