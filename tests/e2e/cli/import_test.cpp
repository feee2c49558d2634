// Mixtures of conversations and parquet through the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "tests/e2e/cli/run_program.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

/// 20 records of 0 to 2 pictures, two of them bad, and a mixture of the first 18.
class ConversationRunTest : public testing::Test {
 protected:
  ConversationRunTest() {
    for (const char* name : {"a.png", "b.png"}) {
      const auto png = image::encode_png(sloped_picture(30, 40));
      io::write_atomic(folder_.path() / name, std::span<const std::byte>(png));
    }
    std::string lines;
    for (int i = 0; i < 20; ++i) {
      const char* images[]{"[]", "\"a.png\"", "[\"b.png\", \"a.png\"]", "\"gone.png\""};
      lines +=
          std::string("{\"image\": ") + images[i >= 10 && i < 12 ? 3 : i % 3] +
          R"(, "conversations": [{"from": "human", "value": "What is it?"}, {"from": "gpt", "value": "Number )" +
          std::to_string(i) + "\"}]}\n";
    }
    io::write_atomic(folder_.path() / "data.jsonl", lines);
    io::write_atomic(folder_.path() / "mix.yaml",
                     std::string("datasets:\n  - json_path: data.jsonl\n    sampling_strategy: first:90%\n"));
    io::write_atomic(
        folder_.path() / "run.yaml",
        "version: 1\nmodel: {family: llama, width: 64, heads: 4, mlp_width: 96, vocabulary: 258}\n"
        "vision: {template: chatml, side: 28}\ndata: {index: \"" +
            path("index") + "\", mode: pack, batch: 8, sequence_length: 256, micro_batch_tokens: 512}\n");
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  ProgramResult index() const {
    return run_chiliad({"data", "index", path("mix.yaml"), "--out", path("index"), "--quiet"});
  }

  TempDir folder_;
};

TEST_F(ConversationRunTest, TheMixtureIsIndexedAndItsTroubleCounted) {
  const auto result = index();
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("16 samples (2 with findings) in 1 shards, layout conversations"));
  EXPECT_THAT(result.out, HasSubstr("  2 x image: is missing\n"));
}

TEST_F(ConversationRunTest, ThePlanBalancesBothModels) {
  ASSERT_EQ(index().exit_code, 0);
  const auto result = run_chiliad({"data", "plan", path("run.yaml"), "--ranks", "2", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("vision"));
  EXPECT_THAT(result.out, HasSubstr("backbone"));
}

TEST_F(ConversationRunTest, AStepIsShownWithItsPictures) {
  ASSERT_EQ(index().exit_code, 0);
  const auto result = run_chiliad({"data", "show", path("run.yaml"), "--step", "0", "--ranks", "2", "--out",
                                   path("step.html"), "--json", "--quiet"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(parse_json<nlohmann::json>(result.out).at("bad"), 0);
  const std::string page = io::read_text(path("step.html"), 1 << 24);
  EXPECT_THAT(page, HasSubstr("picture 2: 4 positions, 1 tiles"));
  EXPECT_THAT(page, HasSubstr("<span class=\"yes\"><bdi>\nNumber "));
  EXPECT_THAT(page, HasSubstr("<img"));
}

TEST_F(ConversationRunTest, TrainingIsRefusedInOneLine) {
  ASSERT_EQ(index().exit_code, 0);
  const auto result = run_chiliad({"train", path("run.yaml"), "--check"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("error: vision.template: expected none for training, got chatml"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST(ParquetTest, RowsBecomeTarsWithAnIndex) {
  const TempDir folder;
  const std::string source = std::string(CHILIAD_TEST_DATA) + "/dataset/parquet/hugging_face.parquet";
  const auto built = run_chiliad(
      {"data", "build", "--from", source, "--out", (folder.path() / "out").string(), "--json", "--quiet"});
  ASSERT_EQ(built.exit_code, 0) << built.err;
  const auto page = parse_json<nlohmann::json>(built.out);
  EXPECT_EQ(page.at("samples"), 15);
  EXPECT_EQ(page.at("dropped").at("image"), 3);
  const auto stats = run_chiliad({"data", "stats", (folder.path() / "out/index").string(), "--json"});
  EXPECT_EQ(stats.exit_code, 0) << stats.err;
}

TEST(ParquetTest, WhatIsNoParquetIsRefusedInOneLine) {
  const TempDir folder;
  io::write_atomic(folder.path() / "x.parquet", std::string_view("no parquet at all"));
  const auto result = run_chiliad({"data", "build", "--from", (folder.path() / "x.parquet").string(), "--out",
                                   (folder.path() / "out").string(), "--quiet"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("x.parquet: cannot be read as parquet: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

}  // namespace
}  // namespace chiliad::test
