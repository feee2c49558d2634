#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/e2e/cli/run_program.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_run.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

/// A run directory without checkpoints whose journal left out the samples 0 (good) and 3 (damaged).
class QuarantineVerbTest : public testing::Test {
 protected:
  QuarantineVerbTest() {
    write_pictures(folder_.path() / "pictures", 6);
    index_pictures(folder_.path() / "pictures", folder_.path() / "index");
    flip_bit(folder_.path() / "pictures" / (picture_name(3) + ".png"));
    std::filesystem::create_directories(run());
    std::ofstream(run() / "run.yaml") << tiny_run_file(folder_.path() / "index", 8);
    std::ofstream(journal()) << R"({"from_step":2,"sample":0,"reason":"a: x: checksum: expected 1, got 2"})"
                                "\n"
                             << R"({"from_step":3,"sample":3,"reason":"b: picture: no","found_at":"noon"})"
                                "\n";
  }
  std::filesystem::path run() const { return folder_.path() / "run"; }
  std::filesystem::path journal() const { return run() / "journal.jsonl"; }
  nlohmann::json looked_at(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"data", "quarantine", run().string(), "--json", "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto result = run_chiliad(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return parse_json<nlohmann::json>(result.out);
  }

  TempDir folder_;
};

TEST_F(QuarantineVerbTest, SaysWhatIsGoodNow) {
  const auto found = looked_at().at("found");
  EXPECT_EQ(found.at(0).at("now"), "good");
  EXPECT_EQ(found.at(1).at("now"), "bad");
  EXPECT_EQ(found.at(1).at("found_at"), "noon");
}

TEST_F(QuarantineVerbTest, WritesThePageIntoTheRunDirectory) {
  static_cast<void>(looked_at());
  EXPECT_THAT(io::read_text(run() / "quarantine.html", 1 << 24), HasSubstr("2 items were found bad"));
}

TEST_F(QuarantineVerbTest, ReleasesWhatIsGood) {
  static_cast<void>(looked_at({"--release"}));
  const std::string text = io::read_text(journal(), 1 << 20);
  EXPECT_EQ(text, R"({"from_step":3,"sample":3,"reason":"b: picture: no","found_at":"noon"})"
                  "\n");
}

TEST_F(QuarantineVerbTest, ChangesNothingUnlessAsked) {
  const std::string before = io::read_text(journal(), 1 << 20);
  static_cast<void>(looked_at());
  EXPECT_EQ(io::read_text(journal(), 1 << 20), before);
}

TEST_F(QuarantineVerbTest, AFolderThatIsNoRunIsWrongInput) {
  const auto result = run_chiliad({"data", "quarantine", (folder_.path() / "pictures").string()});
  EXPECT_EQ(result.exit_code, 2) << result.err;
}

}  // namespace
}  // namespace chiliad::test
