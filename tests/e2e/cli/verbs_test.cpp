#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/e2e/cli/run_program.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

void expect_one_error_line(const ProgramResult& result) {
  EXPECT_THAT(result.err, StartsWith("error: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_EQ(result.out, "");
}

class HelpTest : public testing::TestWithParam<std::vector<std::string>> {};

TEST_P(HelpTest, ShowsAnExampleAndExitsWithZero) {
  auto arguments = GetParam();
  arguments.push_back("--help");
  const auto result = run_chiliad(arguments);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, HasSubstr("Example: chiliad "));
  EXPECT_EQ(result.err, "");
}

INSTANTIATE_TEST_SUITE_P(
    Verbs, HelpTest,
    testing::Values(std::vector<std::string>{}, std::vector<std::string>{"data", "index"},
                    std::vector<std::string>{"data", "build"}, std::vector<std::string>{"data", "stats"},
                    std::vector<std::string>{"data", "verify"}, std::vector<std::string>{"data", "plan"},
                    std::vector<std::string>{"data", "pack"}, std::vector<std::string>{"data", "show"},
                    std::vector<std::string>{"data", "quarantine"}, std::vector<std::string>{"report"},
                    std::vector<std::string>{"train"}, std::vector<std::string>{"verify-layout"},
                    std::vector<std::string>{"ckpt", "ls"}, std::vector<std::string>{"ckpt", "verify"},
                    std::vector<std::string>{"ckpt", "prune"}, std::vector<std::string>{"ckpt", "import"},
                    std::vector<std::string>{"new", "layer"}, std::vector<std::string>{"version"},
                    std::vector<std::string>{"docs", "run-file"}));

TEST(VerbTest, AnUnknownVerbNamesTheNearest) {
  const auto result = run_chiliad({"trian", "run.yaml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("unknown verb 'trian'. Did you mean train?"));
  expect_one_error_line(result);
}

TEST(VerbTest, AnUnknownInnerVerbNamesTheNearest) {
  const auto result = run_chiliad({"data", "stat", "x"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("chiliad data: unknown verb 'stat'. Did you mean stats?"));
}

TEST(VerbTest, NoVerbListsThem) {
  const auto result = run_chiliad({"data"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("index, build, stats, verify, pack, plan, show, quarantine"));
  expect_one_error_line(result);
}

TEST(VerbTest, AMissingArgumentPointsToTheHelp) {
  const auto result = run_chiliad({"data", "index", "photos"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--out is required"));
  EXPECT_THAT(result.err, EndsWith("See chiliad data index --help\n"));
  expect_one_error_line(result);
}

TEST(VerbTest, AnUnknownOptionIsRefused) {
  const auto result = run_chiliad({"data", "stats", "x", "--jsn"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("--jsn"));
  expect_one_error_line(result);
}

TEST(TrainTest, AMissingRunFileIsWrongInput) {
  const auto result = run_chiliad({"train", "/nonexistent/run.yaml"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/run.yaml"));
  expect_one_error_line(result);
}

TEST(TrainTest, AFaultInTheRunFileIsPointedAt) {
  const TempDir folder;
  const auto path = folder.path() / "run.yaml";
  io::write_atomic(path, std::string_view("version: 1\ndata: {index: x}\noptimiser: {lr: 1}\n"));
  const auto result = run_chiliad({"train", path.string()});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("run.yaml:3:"));
  expect_one_error_line(result);
}

TEST(TrainTest, AMissingIndexIsWrongInput) {
  const TempDir folder;
  const auto path = folder.path() / "run.yaml";
  io::write_atomic(path, std::string_view("version: 1\ndata: {index: /nonexistent/index}\n"));
  const auto result = run_chiliad({"train", path.string(), "--check"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("/nonexistent/index"));
  expect_one_error_line(result);
}

TEST(DataTest, AnIndexOfNothingIsWrongInput) {
  const TempDir folder;
  const auto result =
      run_chiliad({"data", "index", "/nonexistent", "--out", (folder.path() / "i").string(), "--quiet"});
  EXPECT_EQ(result.exit_code, 2);
  expect_one_error_line(result);
}

/// 40 documents of 1 to 40 bytes, and a run file of a language model.
class DocumentPlanTest : public testing::Test {
 protected:
  DocumentPlanTest() : index_((folder_.path() / "index").string()) {
    std::string lines;
    for (int i = 1; i <= 40; ++i)
      lines += "{\"text\": \"" + std::string(static_cast<size_t>(i), 'x') + "\"}\n";
    io::write_atomic(folder_.path() / "text.jsonl", lines);
    EXPECT_EQ(
        run_chiliad({"data", "index", (folder_.path() / "text.jsonl").string(), "--out", index_}).exit_code,
        0);
  }

  ProgramResult plan(int vocabulary) const {
    return run_chiliad({"data", "plan", run_file(vocabulary), "--ranks", "2", "--json", "--quiet"});
  }

  std::string run_file(int vocabulary = 258) const {
    const auto run = folder_.path() / "run.yaml";
    io::write_atomic(run,
                     "version: 1\nmodel: {family: llama, width: 64, heads: 4, mlp_width: 96, vocabulary: " +
                         std::to_string(vocabulary) + "}\ndata: {index: \"" + index_ +
                         "\", mode: pack, batch: 20, sequence_length: 32, micro_batch_tokens: 64}\n");
    return run.string();
  }

  TempDir folder_;
  std::string index_;
};

TEST_F(DocumentPlanTest, HasNoPadding) {
  const auto result = plan(258);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto plan = parse_json<nlohmann::json>(result.out);
  EXPECT_EQ(plan["items"], 40);
  EXPECT_EQ(plan["padded_tokens"], 0);
  EXPECT_EQ(plan["tokens"], 784);  // a document of i bytes has i targets, at most 32
  EXPECT_EQ(plan["documents"]["cut"], 8);
}

TEST_F(DocumentPlanTest, SeveralRanksAreAList) {
  const auto result = run_chiliad({"data", "plan", run_file(), "--ranks", "1,2,3", "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto plans = parse_json<nlohmann::json>(result.out)["plans"];
  ASSERT_EQ(plans.size(), 3U);
  EXPECT_EQ(plans[2]["ranks"], 3);
}

TEST_F(DocumentPlanTest, ModePadSaysWhatItCosts) {
  const auto result =
      run_chiliad({"data", "plan", run_file(), "--set", "data.mode=pad", "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_GT(parse_json<nlohmann::json>(result.out)["padded_tokens"], 100);
}

TEST_F(DocumentPlanTest, TakesPacksMadeBeforehand) {
  const std::string packs = (folder_.path() / "run.packs").string();
  const auto made = run_chiliad({"data", "pack", run_file(), "--out", packs, "--json", "--quiet"});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  const auto summary = parse_json<nlohmann::json>(made.out);
  EXPECT_EQ(summary["samples"], 40);
  const auto result = run_chiliad({"data", "plan", run_file(), "--set", "data.packs=" + packs, "--set",
                                   "data.batch=4", "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto plan = parse_json<nlohmann::json>(result.out);
  EXPECT_EQ(plan["packs"], summary["packs"]);
  EXPECT_EQ(plan["items"], 40);
  EXPECT_EQ(plan["coverage"]["missed"], 0);
}

TEST_F(DocumentPlanTest, RefusesStalePacks) {
  const std::string packs = (folder_.path() / "run.packs").string();
  ASSERT_EQ(run_chiliad({"data", "pack", run_file(), "--out", packs, "--quiet"}).exit_code, 0);
  const auto result = run_chiliad({"data", "plan", run_file(), "--set", "data.packs=" + packs, "--set",
                                   "data.sequence_length=16", "--quiet"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("data.sequence_length: was 32, is 16"));
}

TEST_F(DocumentPlanTest, RefusesAModelOfFewerIdsThanTheTokenizer) {
  const auto result = plan(257);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("model.vocabulary: expected at least the 258 ids of the tokenizer, got 257"));
}

TEST(DataTest, ADamagedManifestIsDamagedData) {
  const TempDir folder;
  io::write_atomic(folder.path() / "manifest.json", std::string_view("{"));
  const auto result = run_chiliad({"data", "stats", folder.path().string()});
  EXPECT_EQ(result.exit_code, 3);
  expect_one_error_line(result);
}

TEST(CkptTest, ListsNothingInAnEmptyRun) {
  const TempDir folder;
  const auto result = run_chiliad({"ckpt", "ls", folder.path().string(), "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(parse_json<nlohmann::json>(result.out), nlohmann::json::array());
}

TEST(CkptTest, AMissingFolderIsWrongInput) {
  const auto result = run_chiliad({"ckpt", "ls", "/nonexistent"});
  EXPECT_EQ(result.exit_code, 2);
  expect_one_error_line(result);
}

TEST(VersionTest, IsJsonWhereAsked) {
  const auto result = run_chiliad({"version", "--json"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(parse_json<nlohmann::json>(result.out).contains("version"));
}

TEST(DocsTest, TheSchemaIsJson) {
  const auto result = run_chiliad({"docs", "run-file", "--schema"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(parse_json<nlohmann::json>(result.out).contains("properties"));
}

}  // namespace
}  // namespace chiliad::test
