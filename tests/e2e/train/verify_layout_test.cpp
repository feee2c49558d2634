// `chiliad verify-layout`: the built programs prove a layout, and see one that is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/support/made_documents.h"
#include "tests/support/picture_set.h"
#include "tests/support/program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_language_run.h"
#include "tests/support/tiny_run.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

constexpr int64_t kSteps = 4;

ProgramResult verify(const std::filesystem::path& run_file, std::vector<std::string> more,
                     const Program::Environment& environment = {}) {
  std::vector<std::string> argv{CHILIAD_BIN_DIR "/chiliad", "verify-layout", run_file.string()};
  argv.insert(argv.end(), more.begin(), more.end());
  return Program(std::move(argv), environment).wait();
}

class VerifyLayoutTest : public testing::Test {
 protected:
  VerifyLayoutTest() {
    write_pictures(folder_.path() / "pictures", 20);
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    io::write_atomic(run_file(), tiny_run_file(folder_.path() / "index", kSteps));
  }
  [[nodiscard]] std::filesystem::path run_file() const { return folder_.path() / "run.yaml"; }
  [[nodiscard]] std::filesystem::path run_dir() const { return folder_.path() / "run"; }

  TempDir folder_;
};

TEST_F(VerifyLayoutTest, ReplicasOfShardsGiveTheNumbersOfOneDevice) {
  const auto result = verify(run_file(), {"--nproc", "4", "--set", "parallel.dp_shard=2"});
  EXPECT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_THAT(result.out, HasSubstr("The layout gives the numbers of one device"));
}

TEST_F(VerifyLayoutTest, TensorParallelLanguageModelGivesTheNumbersOfOneDevice) {
  const MadeDocuments documents(40);
  io::write_atomic(run_file(), tiny_language_run_file(documents.index().folder(), kSteps, "llama"));
  const auto result = verify(run_file(), {"--nproc", "2", "--set", "parallel.tp=2", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_EQ(parse_json<nlohmann::json>(result.out)["layout"]["tp"], 2);
}

TEST_F(VerifyLayoutTest, ABrokenLayoutFailsAndNamesAParameter) {
  const auto result =
      verify(run_file(), {"--nproc", "2", "--json", "--quiet"}, {{"CHILIAD_PLANTED_BUG", "swapped_ranks"}});
  ASSERT_EQ(result.exit_code, 1) << result.err << result.out;
  const auto gradients = parse_json<nlohmann::json>(result.out)["checks"][1];
  EXPECT_FALSE(gradients["ok"]);
  EXPECT_THAT(gradients["where"].get<std::string>(), HasSubstr("."));
}

TEST_F(VerifyLayoutTest, EveryParameterHasAGradientToCompare) {
  const auto result = verify(run_file(), {"--nproc", "2", "--steps", "1", "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  const auto report = parse_json<nlohmann::json>(result.out);
  EXPECT_GT(report["parameters"], 0);
  EXPECT_EQ(report["without_gradient"], 0);
}

TEST_F(VerifyLayoutTest, WritesNothingIntoTheRunDirectory) {
  const auto result =
      verify(run_file(), {"--nproc", "2", "--steps", "1", "--set", "run.dir=" + run_dir().string()});
  ASSERT_EQ(result.exit_code, 0) << result.err << result.out;
  EXPECT_FALSE(std::filesystem::exists(run_dir()));
}

TEST_F(VerifyLayoutTest, MoreRanksThanAProcessHoldsAreRefused) {
  const auto result = verify(run_file(), {"--nproc", "66", "--set", "parallel.dp_shard=2", "--quiet"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("parallel.nproc: expected at most 64 ranks"));
}

TEST_F(VerifyLayoutTest, MoreStepsThanTheRunHasAreRefused) {
  const auto result = verify(run_file(), {"--steps", "5", "--quiet"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--steps: expected at most run.steps = 4, got 5"));
}

TEST_F(VerifyLayoutTest, AMissingRunFileIsWrongInput) {
  const auto result = verify(folder_.path() / "none.yaml", {});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("none.yaml"));
}

}  // namespace
}  // namespace chiliad::test
