#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kSteps = 12;

/// One data set and one uninterrupted run, with which killed and repeated runs are compared.
class KillTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    job_ = std::make_unique<TrainJob>(kSteps);
    ASSERT_EQ(job_->train("reference", 2).exit_code, 0);
  }
  static void TearDownTestSuite() { job_.reset(); }

  /// The same command once more, to the end.
  static void finish_and_compare(const std::string& run, const std::vector<std::string>& more = {}) {
    const auto last = job_->train(run, 2, {}, more);
    ASSERT_EQ(last.exit_code, 0) << last.err;
    EXPECT_EQ(ledger_difference(*job_, "reference", run), "");
    EXPECT_EQ(weight_difference(*job_, "reference", run), "");
  }
  [[nodiscard]] static bool no_process_is_left(const std::string& run) {
    return poll_until(std::chrono::seconds(2), [&] { return job_->processes(run).empty(); });
  }

  static inline std::unique_ptr<TrainJob> job_;
};

/// Kills worker 1, then 0, then 1 in one phase, each time of the repeated command.
class WorkerKillTest : public KillTest, public testing::WithParamInterface<std::string> {};

TEST_P(WorkerKillTest, TheSameCommandEndsWithTheSameWeights) {
  const std::string& phase = GetParam();
  const std::vector<std::string> places = phase == "checkpoint"
                                              ? std::vector<std::string>{"1:4", "0:8", "1:12"}
                                              : std::vector<std::string>{"1:1", "0:5", "1:10"};
  for (const auto& place : places) {
    const auto killed = job_->train(phase, 2, {{"CHILIAD_KILL_AT", place + ":" + phase}});
    ASSERT_EQ(killed.exit_code, 4) << killed.err;
    const std::string step = place.substr(2);
    EXPECT_THAT(killed.err, HasSubstr("rank " + place.substr(0, 1) + " died at step " + step + " in phase " +
                                      phase + ": signal 9 (Killed)"));
    EXPECT_TRUE(no_process_is_left(phase));
  }
  finish_and_compare(phase);
}

INSTANTIATE_TEST_SUITE_P(Phases, WorkerKillTest,
                         testing::Values("data_wait", "host_to_device", "forward", "backward",
                                         "communication", "optimizer", "checkpoint"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase(name, '_');
                           return name;
                         });

/// Kills the parent at the first, second and third call of one kind, each time of the repeated command. Every
/// second step is saved and one checkpoint kept, so that all of them commit and prune.
class ParentKillTest : public KillTest, public testing::WithParamInterface<std::string> {};

TEST_P(ParentKillTest, TheSameCommandEndsWithTheSameWeights) {
  const std::string& call = GetParam();
  std::string run = "parent-" + call;
  std::replace_if(
      run.begin(), run.end(), [](char c) { return c == ':' || c == '/'; }, '-');
  const std::vector<std::string> often{"--set", "checkpoint.every=2", "--set", "checkpoint.keep=1"};
  for (const char* nth : {"1", "2", "3"}) {
    const auto killed = job_->train(run, 2, {{"CHILIAD_FILE_FAULT", call + ":" + nth + ":kill"}}, often);
    ASSERT_EQ(killed.exit_code, -SIGKILL) << killed.err;
    EXPECT_TRUE(no_process_is_left(run));
  }
  finish_and_compare(run, often);
  EXPECT_EQ(job_->committed_steps(run), std::vector<int64_t>{kSteps});
}

INSTANTIATE_TEST_SUITE_P(Calls, ParentKillTest,
                         testing::Values("make_folder:checkpoints/step-", "write:/model/rank-00001",
                                         "rename:/optim/rank-00000", "write:state.json", "sync:manifest.json",
                                         "rename:manifest.json", "write:COMMIT", "rename:COMMIT",
                                         "remove:COMMIT",  // prune begins
                                         "remove:checkpoints/step-"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::erase_if(
                               name, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; });
                           return name;
                         });

}  // namespace
}  // namespace chiliad::test
