#include "chiliad/supervise/launch/run_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string_view>

#include "chiliad/base/error.h"
#include "tests/support/temp_dir.h"

namespace chiliad::supervise {
namespace {

using testing::HasSubstr;

constexpr std::string_view kRunFile = "version: 1\ndata:\n  index: photos.index\n";

spec::RunFile run_file(const std::vector<std::string>& overrides = {}) {
  return spec::parse_run_file(kRunFile, "run.yaml", "run", overrides);
}

TEST(RunDirectoryTest, ASecondJobIsToldWhoHasIt) {
  test::TempDir folder;
  const RunDirectory directory(folder.path() / "run");
  const auto lock = directory.take();
  try {
    (void)directory.take();
    FAIL() << "taken twice";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("pid " + std::to_string(::getpid()) + " on host"));
  }
}

TEST(CheckSameRunTest, NamesOldAndNewValue) {
  try {
    check_same_run({{"model.width", "256", "512", false}}, "runs/a");
    FAIL() << "not refused";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr("model.width was 256, is now 512"));
  }
}

TEST(CheckSameRunTest, LetsFreeSettingsChange) {
  EXPECT_NO_THROW(check_same_run({{"run.steps", "100", "200", true}}, "runs/a"));
}

TEST(FindStartTest, AnEmptyDirectoryStartsAtTheBeginning) {
  test::TempDir folder;
  const auto start = find_start(RunDirectory(folder.path()), run_file(), false);
  EXPECT_EQ(start.checkpoint, "");
  EXPECT_FALSE(start.finished);
}

TEST(FindStartTest, FromScratchSetsTheEarlierRunAside) {
  test::TempDir folder;
  const RunDirectory directory(folder.path());
  io::make_folders(directory.checkpoints() / "step-10.g0");
  io::write_atomic(directory.metrics(), std::string_view("{}\n"));
  (void)find_start(directory, run_file(), true);
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "set-aside-1" / "checkpoints" / "step-10.g0"));
  EXPECT_FALSE(std::filesystem::exists(directory.metrics()));
}

TEST(PrepareJournalTest, CutsATornLastLine) {
  test::TempDir folder;
  const RunDirectory directory(folder.path());
  io::write_atomic(directory.journal(), std::string_view("{\"a\":1}\n{\"b"));
  prepare_journal(directory, {"checkpoints/step-5.g0", 5, false}, run_file());
  EXPECT_EQ(io::read_text(directory.journal(), 100), "{\"a\":1}\n");
}

TEST(PrepareJournalTest, KeepsItForTheSameContent) {
  test::TempDir folder;
  const RunDirectory directory(folder.path());
  io::write_atomic(directory.journal(), std::string_view("{\"a\":1}\n"));
  io::write_atomic(directory.run_file(), spec::to_yaml(run_file()));
  prepare_journal(directory, {}, run_file({"optimizer.lr=0.01"}));
  EXPECT_TRUE(std::filesystem::exists(directory.journal()));
}

TEST(PrepareJournalTest, DropsItForOtherContent) {
  test::TempDir folder;
  const RunDirectory directory(folder.path());
  io::write_atomic(directory.journal(), std::string_view("{\"a\":1}\n"));
  io::write_atomic(directory.run_file(), spec::to_yaml(run_file()));
  prepare_journal(directory, {}, run_file({"run.seed=2"}));
  EXPECT_FALSE(std::filesystem::exists(directory.journal()));
}

TEST(PrepareJournalTest, DropsItForAnotherIndex) {
  test::TempDir folder;
  const RunDirectory directory(folder.path());
  io::write_atomic(directory.journal(), std::string_view("{\"a\":1}\n"));
  io::write_atomic(directory.run_file(), spec::to_yaml(run_file()));
  prepare_journal(directory, {}, run_file({"data.index=other.index"}));
  EXPECT_FALSE(std::filesystem::exists(directory.journal()));
}

}  // namespace
}  // namespace chiliad::supervise
