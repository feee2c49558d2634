#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/support/picture_set.h"
#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class BadDataTest : public testing::Test {
 protected:
  void spoil(int64_t picture) { flip_bit(job_.pictures() / (picture_name(picture) + ".png")); }

  [[nodiscard]] int64_t bad_items(const std::string& run) const {
    int64_t count = 0;
    for (const auto& [step, metrics] : job_.metrics(run)) count += metrics.bad_items;
    return count;
  }

  TrainJob job_{8};
};

TEST_F(BadDataTest, AnUnreadablePictureIsSkippedAndCounted) {
  spoil(3);
  const auto result = job_.train("run", 2);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("p003"));
  EXPECT_GE(bad_items("run"), 1);
}

TEST_F(BadDataTest, AnUnreadablePictureIsInTheJournalOnce) {
  spoil(3);
  ASSERT_EQ(job_.train("run", 2).exit_code, 0);
  const auto journal = io::read_text(job_.run_dir("run") / "journal.jsonl", 1 << 20);
  EXPECT_EQ(std::count(journal.begin(), journal.end(), '\n'), 1) << journal;
}

TEST_F(BadDataTest, AnUnreadablePictureGivesTheSameItemsForEveryLayout) {
  spoil(3);
  ASSERT_EQ(job_.train("one", 1).exit_code, 0);
  ASSERT_EQ(job_.train("three", 3).exit_code, 0);
  EXPECT_EQ(ledger_difference(job_, "one", "three"), "");
}

TEST_F(BadDataTest, AnUnreadablePictureGivesTheSameWeightsAfterAKill) {
  spoil(3);
  ASSERT_EQ(job_.train("reference", 2).exit_code, 0);
  ASSERT_EQ(job_.train("run", 2, {{"CHILIAD_KILL_AT", "1:3:forward"}}).exit_code, 4);
  ASSERT_EQ(job_.train("run", 2, {{"CHILIAD_KILL_AT", "0:6:backward"}}).exit_code, 4);
  ASSERT_EQ(job_.train("run", 2).exit_code, 0);
  EXPECT_EQ(ledger_difference(job_, "reference", "run"), "");
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

TEST_F(BadDataTest, StopsAtAnUnreadablePictureIfAsked) {
  spoil(3);
  const auto result = job_.train("run", 2, {}, {"--set", "data.on_bad_item=stop"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("p003"));
  EXPECT_THAT(result.err, HasSubstr("data.on_bad_item: skip"));
}

TEST_F(BadDataTest, StopsWhereTooMuchIsUnreadable) {
  for (const int64_t picture : {1, 3, 5, 7, 9, 11}) spoil(picture);
  const auto result = job_.train("run", 2, {}, {"--set", "run.steps=40"});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("more than data.max_bad_fraction 0.05"));
}

TEST_F(BadDataTest, GoesOnWhereTheBoundIsRaised) {
  for (const int64_t picture : {1, 3, 5, 7, 9, 11}) spoil(picture);
  ASSERT_EQ(job_.train("run", 2).exit_code, 3);
  const auto result = job_.train("run", 2, {}, {"--set", "data.max_bad_fraction=0.5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(BadDataTest, StopsAtTheSameStepAgain) {
  for (const int64_t picture : {1, 3, 5, 7, 9, 11}) spoil(picture);
  ASSERT_EQ(job_.train("run", 2).exit_code, 3);
  const auto journal = io::read_text(job_.run_dir("run") / "journal.jsonl", 1 << 20);
  EXPECT_EQ(job_.train("run", 3).exit_code, 3);
  EXPECT_THAT(io::read_text(job_.run_dir("run") / "journal.jsonl", 1 << 20), HasSubstr(journal));
}

TEST_F(BadDataTest, AnEmptyCaptionIsLeftOutAndCounted) {
  std::ofstream(job_.pictures() / (picture_name(4) + ".txt"), std::ios::trunc).flush();
  index_pictures(job_.pictures(), job_.index());
  const auto check = job_.train("run", 1, {}, {"--check", "--json"});
  ASSERT_EQ(check.exit_code, 0) << check.err;
  EXPECT_EQ(parse_json<nlohmann::json>(check.out).at("coverage").at("no_caption"), 1);
  EXPECT_EQ(job_.train("run", 1).exit_code, 0);
}

TEST_F(BadDataTest, ChangedDataIsRefusedOnResume) {
  ASSERT_EQ(job_.train("run", 2, {}, {"--set", "run.steps=4"}).exit_code, 0);
  fs::remove(job_.pictures() / (picture_name(2) + ".png"));
  index_pictures(job_.pictures(), job_.index());
  const auto checked = job_.train("run", 2, {}, {"--check"});
  EXPECT_EQ(checked.exit_code, 2) << checked.err;
  const auto resumed = job_.train("run", 2, {}, {"--set", "run.steps=9"});
  EXPECT_EQ(resumed.exit_code, 2) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("the data changed since the checkpoint of step 4"));
  std::ifstream file(job_.run_dir("run") / "run.yaml");
  const std::string kept(std::istreambuf_iterator<char>(file), {});
  EXPECT_THAT(kept, HasSubstr("steps: 4"));  // a refused resume changes nothing
}

TEST_F(BadDataTest, AMovedIndexMayGoOn) {
  ASSERT_EQ(job_.train("reference", 2).exit_code, 0);
  ASSERT_EQ(job_.train("run", 2, {}, {"--set", "run.steps=4"}).exit_code, 0);
  const fs::path moved = job_.index().string() + "-moved";
  fs::rename(job_.index(), moved);
  const auto resumed = job_.train("run", 2, {}, {"--set", "data.index=" + moved.string()});
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_EQ(weight_difference(job_, "reference", "run"), "");
}

}  // namespace
}  // namespace chiliad::test
