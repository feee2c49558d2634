#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "tests/e2e/cli/run_program.h"
#include "tests/support/picture_set.h"
#include "tests/support/temp_dir.h"

namespace chiliad::test {
namespace {

using testing::HasSubstr;

/// Sets of 40 and 10 pictures, by 1 to 3.
class MixingTest : public testing::Test {
 protected:
  MixingTest() {
    for (const auto& [name, count] : {std::pair("birds", 40), {"ink", 10}}) {
      const auto pictures = folder_.path() / (std::string(name) + ".pictures");
      std::filesystem::create_directories(pictures);
      write_pictures(pictures, count);
      index_pictures(pictures, folder_.path() / name);
    }
  }
  ProgramResult plan(const std::string& birds = "", const std::vector<std::string>& more = {}) const {
    const auto file = folder_.path() / "run.yaml";
    io::write_atomic(
        file, "version: 1\nrun: {steps: 20}\ndata:\n  batch: 8\n  sources:\n    - {name: birds, index: " +
                  (folder_.path() / "birds").string() + birds +
                  "}\n    - {name: ink, weight: 3, index: " + (folder_.path() / "ink").string() + "}\n");
    std::vector<std::string> arguments{"data", "plan", file.string(), "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_chiliad(arguments);
  }

  TempDir folder_;
};

TEST_F(MixingTest, ThePlanTellsWhatEachSourceGives) {
  const auto result = plan("", {"--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto sources = parse_json<nlohmann::json>(result.out).at("sources");
  EXPECT_EQ(sources.at(0).at("name"), "birds");
  EXPECT_EQ(sources.at(0).at("items"), 14);  // a quarter of 7 steps
  EXPECT_EQ(sources.at(1).at("items"), 42);
  EXPECT_DOUBLE_EQ(sources.at(1).at("epochs"), 4.2);
}

TEST_F(MixingTest, ARunBeyondTheEndIsRefused) {
  const auto result = plan(
      ", epochs: 1",
      {"--set", "data.sources=[{name: ink, epochs: 2, index: " + (folder_.path() / "ink").string() + "}]"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err,
              HasSubstr("run.steps: expected at most 3, after which all data.sources have shown"));
}

}  // namespace
}  // namespace chiliad::test
