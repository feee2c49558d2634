// One rank of several is stopped, killed, slow, or started with other settings: the job ends in time and
// names it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

constexpr int64_t kSteps = 12;

class OddRankTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { job_ = std::make_unique<TrainJob>(kSteps); }
  static void TearDownTestSuite() { job_.reset(); }

  static std::vector<std::string> layout(int dp_shard, int tp, const char* timeout = "5") {
    return {"--set", "parallel.dp_shard=" + std::to_string(dp_shard),
            "--set", "parallel.tp=" + std::to_string(tp),
            "--set", std::string("parallel.timeout_s=") + timeout};
  }
  [[nodiscard]] static bool no_process_is_left(const std::string& run) {
    return poll_until(std::chrono::seconds(2), [&] { return job_->processes(run).empty(); });
  }
  [[nodiscard]] static std::string incident(const std::string& run) {
    std::stringstream text;
    for (const auto& entry : fs::directory_iterator(job_->run_dir(run) / "incidents")) {
      text << std::ifstream(entry.path()).rdbuf();
    }
    return text.str();
  }
  /// A worker program that does `prelude`, shell commands that see $file (the run file), on one rank alone.
  static Program::Environment worker_with(const std::string& name, int rank, const std::string& prelude) {
    const auto path = job_->run_dir("worker-" + name + ".sh");
    std::ofstream(path) << "#!/bin/sh\nbefore=; rank=; file=\nfor word in \"$@\"; do\n"
                           "  [ \"$before\" = --rank ] && rank=$word\n"
                           "  [ \"$before\" = --run-file ] && file=$word\n  before=$word\ndone\n"
                        << "if [ \"$rank\" = " << rank << " ]; then\n"
                        << prelude << "\nfi\nexec " CHILIAD_BIN_DIR "/chiliad-worker \"$@\"\n";
    ::chmod(path.c_str(), 0755);
    return {{"CHILIAD_WORKER", path.string()}};
  }
  /// The prelude that gives a rank a changed copy of the run file.
  static std::string with_run_file(const std::string& sed) {
    return "sed '" + sed +
           "' \"$file\" > \"$file.other\"\n"
           "set -- $(echo \"$@\" | sed \"s#--run-file $file#--run-file $file.other#\")";
  }

  static inline std::unique_ptr<TrainJob> job_;
};

/// A rank, where it is stopped or killed, and the layout.
struct Place {
  const char* name;
  int nproc;
  int dp_shard;
  int tp;
  int rank;
  const char* operation;  ///< of step 3
};

std::string name_of(const testing::TestParamInfo<Place>& given) {
  return given.param.name;
}

class StoppedRankTest : public OddRankTest, public testing::WithParamInterface<Place> {};

TEST_P(StoppedRankTest, IsNamedAndNobodyHangs) {
  const auto& place = GetParam();
  const std::string at = std::to_string(place.rank) + ":3:" + place.operation;
  const std::string run = std::string("stopped-") + place.name;
  const auto result =
      job_->train(run, place.nproc, {{"CHILIAD_STOP_AT", at}}, layout(place.dp_shard, place.tp));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  std::string words = place.operation;
  std::replace(words.begin(), words.end(), '_', ' ');
  const std::string who = "rank " + std::to_string(place.rank);
  EXPECT_THAT(result.err, HasSubstr(who + " is stopped by a signal: " + who + " is at step 3, " + words));
  EXPECT_THAT(incident(run), HasSubstr("\"rank\": " + std::to_string(place.rank) + ",\n  \"suspects\": ["));
  EXPECT_TRUE(no_process_is_left(run));
}

INSTANTIATE_TEST_SUITE_P(Places, StoppedRankTest,
                         testing::Values(Place{"gather", 4, 2, 1, 2, "await_unshard"},
                                         Place{"reduce", 4, 2, 1, 3, "await_reduce"},
                                         Place{"replicas", 4, 2, 1, 0, "await_reduce_replicas"},
                                         Place{"control", 4, 2, 1, 1, "agree"},
                                         Place{"tensorParallel", 2, 1, 2, 1, "backward"},
                                         Place{"tensorParallelControl", 2, 1, 2, 0, "sum_replicated"}),
                         name_of);

class KilledRankTest : public OddRankTest, public testing::WithParamInterface<Place> {};

TEST_P(KilledRankTest, IsNamedAndNobodyHangs) {
  const auto& place = GetParam();
  const std::string at = std::to_string(place.rank) + ":3:" + place.operation;
  const std::string run = std::string("killed-") + place.name;
  const auto result =
      job_->train(run, place.nproc, {{"CHILIAD_KILL_AT", at}}, layout(place.dp_shard, place.tp));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank " + std::to_string(place.rank) + " died at step 3 in phase "));
  EXPECT_TRUE(no_process_is_left(run));
}

INSTANTIATE_TEST_SUITE_P(Places, KilledRankTest,
                         testing::Values(Place{"tensorParallelForward", 2, 1, 2, 1, "forward"},
                                         Place{"tensorParallelControl", 4, 2, 2, 2, "sum_replicated"},
                                         Place{"reduce", 4, 2, 1, 3, "await_reduce"}),
                         name_of);

TEST_F(OddRankTest, AStoppedRankIsAHangWhereCollectivesWaitLonger) {
  auto settings = layout(2, 1, "100");
  settings.insert(settings.end(), {"--set", "supervise.hang_timeout_s=6"});
  const auto result = job_->train("hang", 2, {{"CHILIAD_STOP_AT", "1:3:await_reduce"}}, settings);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("no progress for 6.0 s: rank 1 is stopped by a signal"));
  EXPECT_TRUE(no_process_is_left("hang"));
}

TEST_F(OddRankTest, AStoppedRankIsNamedOverTcpToo) {
  auto settings = layout(2, 1);
  settings.insert(settings.end(), {"--set", "parallel.transport=gloo"});
  const auto result = job_->train("tcp", 2, {{"CHILIAD_STOP_AT", "1:3:await_reduce"}}, settings);
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1 is stopped by a signal: rank 1 is at step 3, await reduce"));
  EXPECT_TRUE(no_process_is_left("tcp"));
}

TEST_F(OddRankTest, ARankThatIsBusyElsewhereIsBehind) {
  const auto worker = worker_with("slow", 2, "export CHILIAD_DELAY_ROW=backward CHILIAD_DELAY_MS=60000");
  const auto result = job_->train("slow", 4, worker, layout(2, 1));
  EXPECT_EQ(result.exit_code, 4) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 2 is behind: rank 2 is at step 0, backward of layer "));
  EXPECT_TRUE(no_process_is_left("slow"));
}

TEST_F(OddRankTest, AnotherConfigurationIsNamedWithItsKey) {
  const auto worker = worker_with("width", 1, with_run_file("s/width: 32/width: 64/"));
  const auto result = job_->train("width", 3, worker);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err,
              HasSubstr("rank 1: configuration: expected the same on all 3 ranks, got another one: "
                        "model.width is 64 on rank 1 and 32 on rank 0"));
}

TEST_F(OddRankTest, AnotherLayoutIsNamedBeforeGroupsAreMadeOfIt) {
  const auto worker = worker_with("layout", 0, with_run_file("s/dp_shard: 2/dp_shard: 1/"));
  const auto result = job_->train("layout", 4, worker, layout(2, 1, "30"));
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("parallel.dp_shard is 1 on rank 0 and 2 on rank 1"));
}

}  // namespace
}  // namespace chiliad::test
