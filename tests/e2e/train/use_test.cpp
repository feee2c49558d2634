// What a trained run is used for: pictures, evaluation, checks of its checkpoints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/train_job.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

class UseTest : public testing::Test {
 protected:
  ProgramResult chiliad(const std::vector<std::string>& arguments) {
    std::vector<std::string> all{CHILIAD_BIN_DIR "/chiliad"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    return Program(all, {}).wait();
  }

  TrainJob job_{3};
};

TEST_F(UseTest, GeneratesPicturesInTwoLanguages) {
  ASSERT_EQ(job_.train("run", 2).exit_code, 0);
  const auto out = job_.run_dir("grid.png");
  const auto made = chiliad({"generate", job_.run_dir("run").string(), "--prompt", "A frog.", "--prompt",
                             "一只青蛙。", "--steps", "2", "--out", out.string()});
  EXPECT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("2 pictures"));
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST_F(UseTest, EvaluatesARun) {
  ASSERT_EQ(job_.train("run", 1).exit_code, 0);
  const auto result =
      chiliad({"eval", job_.run_dir("run").string(), "--captions", "3", "--steps", "2", "--json"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\"top10\""));
}

TEST_F(UseTest, DamagedCheckpointsAreDamagedData) {
  ASSERT_EQ(job_.train("run", 1).exit_code, 0);
  for (const auto& entry : std::filesystem::directory_iterator(job_.run_dir("run") / "checkpoints")) {
    std::filesystem::resize_file(entry.path() / "manifest.json", 10);
  }
  const auto made = chiliad({"generate", job_.run_dir("run").string(), "--prompt", "A frog."});
  EXPECT_EQ(made.exit_code, 3) << made.err;
}

TEST_F(UseTest, VerifyOfAFolderWithoutCheckpointsIsWrongUse) {
  const auto result = chiliad({"ckpt", "verify", job_.pictures().string()});
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_THAT(result.err, HasSubstr("holds no committed checkpoint"));
}

TEST_F(UseTest, RunDirectoryThatIsAFileIsWrongUse) {
  std::ofstream(job_.run_dir("file")) << "x";
  const auto result = job_.train("file", 1);
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_THAT(result.err, HasSubstr("run.dir: expected a folder"));
}

}  // namespace
}  // namespace chiliad::test
