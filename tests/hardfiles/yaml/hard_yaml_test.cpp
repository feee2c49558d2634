// Every YAML file of the kit, its generic field names renamed to ours and completed by what a run file needs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/spec/run_file.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

namespace chiliad::spec {
namespace {

namespace fs = std::filesystem;
using testing::ContainsRegex;
using testing::HasSubstr;

std::string slurp(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Generic name -> section and key. A near miss stays one: it lacks its last letter here too.
const std::map<std::string, std::pair<std::string, std::string>> kNames{
    {"run_name", {"run", "name"}},
    {"batch_size", {"data", "batch"}},
    {"learning_rate", {"optimizer", "lr"}},
    {"learning_rat", {"optimizer", "warmup_step"}},
    {"steps", {"run", "steps"}},
    {"seed", {"run", "seed"}},
    {"language", {"data", "index"}},
    {"compile", {"data", "flip"}},
    {"countries", {"data", "languages"}},
    {"time_limit", {"supervise", "hang_timeout_s"}},
    {"note", {"data", "index"}},
    {"hook", {"data", "index"}}};

// One document of generic fields as sections of ours; lines of other forms are kept as they are.
std::string renamed_document(const std::vector<std::string>& lines) {
  std::map<std::string, std::string> sections;
  std::string others;
  bool has_index = false;
  for (const std::string& line : lines) {
    const auto name = kNames.find(line.substr(0, line.find(':')));
    if (name == kNames.end()) {
      others += line + "\n";
      continue;
    }
    const auto& [section, key] = name->second;
    has_index = has_index || key == "index";
    sections[section] += "  " + key + line.substr(line.find(':')) + "\n";
  }
  if (!has_index) sections["data"] += "  index: pictures\n";
  std::string text = "version: 1\n";
  for (const auto& [section, body] : sections) text += section + ":\n" + body;
  return text + others;
}

std::string renamed(const std::string& source) {
  if (source.empty()) return source;
  std::istringstream stream(source);
  std::vector<std::string> lines;
  std::string text;
  for (std::string line; std::getline(stream, line);) {
    if (line == "---") {
      text += renamed_document(std::exchange(lines, {})) + "---\n";
    } else {
      lines.push_back(line);
    }
  }
  return text + renamed_document(lines);
}

// What a refusal must say, by file; any other file of the kit must at least be refused with a place.
const std::map<std::string, std::string> kCauses{
    {"batch_fraction", "data.batch: expected a whole number"},
    {"batch_negative", "data.batch: expected a whole number in \\[1, "},
    {"billion_laughs", "an anchor .*not supported"},
    {"duplicate_key", "key \"batch\" stands twice"},
    {"empty", "the file is empty"},
    {"latin1", "expected UTF-8, got the byte 0xe9 at byte offset"},
    {"lr_nan", "optimizer.lr: expected a number .*got \".nan\""},
    {"near_miss_key", "unknown key \"warmup_step\" .*Did you mean warmup_steps"},
    {"norway", "data.flip: expected true or false, got \"on\""},
    {"octal_0123", "run.seed: expected a whole number .*got \"0123\""},
    {"python_tag", "Tags are not supported"},
    {"sexagesimal", "supervise.hang_timeout_s: expected a number .*got \"12:30\""},
    {"steps_huge", "run.steps: expected a whole number in"},
    {"tab_indent", "got a tab"},
    {"two_documents", "expected one document"},
    {"yes_bool", "data.flip: expected true or false, got \"yes\""}};

class HardYamlTest : public testing::TestWithParam<std::string> {};

TEST_P(HardYamlTest, HasTheOutcomeOfTheKit) {
  const auto index = parse_json<nlohmann::json>(slurp(test::hard_files_kit() / "index.json"));
  const auto& entry = index["files"][GetParam()];
  const test::TempDir dir;
  const fs::path path = dir.path() / fs::path(GetParam()).filename();
  std::ofstream(path, std::ios::binary) << renamed(slurp(test::hard_files_kit() / GetParam()));
  std::string error;
  try {
    const RunFile file = read_run_file(path, {});
    EXPECT_EQ(file.run.name, "test");
    EXPECT_EQ(file.data.batch, 8);
    EXPECT_EQ(file.optimizer.lr, 1e-4);
  } catch (const InvalidInput& refusal) {
    error = refusal.what();
  }
  if (entry["expect"] == "ok") {
    EXPECT_EQ(error, "");
    return;
  }
  EXPECT_THAT(error, HasSubstr(path.filename().string() + ":"));
  const bool has_lines = GetParam() != "yaml/empty.yaml";
  EXPECT_THAT(error, ContainsRegex(has_lines ? "\\.yaml:[0-9]+:[0-9]+: " : "\\.yaml: "));
  const auto cause = kCauses.find(path.stem().string());
  EXPECT_THAT(error, ContainsRegex(cause == kCauses.end() ? "expected" : cause->second));
}

std::vector<std::string> cases() {
  const auto index = try_parse_json<nlohmann::json>(slurp(test::hard_files_kit() / "index.json"));
  std::vector<std::string> names;
  if (index.is_discarded()) return names;
  for (const auto& [name, entry] : index["files"].items()) {
    if (entry["kind"] == "yaml") names.push_back(name);
  }
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name;
  for (const char c : info.param) {
    if (std::isalnum(static_cast<unsigned char>(c))) name += c;
  }
  return name + std::to_string(info.index);
}

INSTANTIATE_TEST_SUITE_P(Kit, HardYamlTest, testing::ValuesIn(cases()), test_name);

TEST(HardYamlKitTest, IsThere) {
  EXPECT_GE(cases().size(), 18u) << test::hard_files_kit();
}

}  // namespace
}  // namespace chiliad::spec
