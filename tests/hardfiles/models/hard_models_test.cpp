// Every config.json and tokenizer.json of the kit of hard files against the outcome that its index.json
// states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/text/tokenizer.h"
#include "chiliad/weights/configs/language.h"
#include "tests/support/kits.h"

namespace chiliad {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

struct Case {
  std::string file;
  std::string meaning;  ///< of a good one
  bool good = false;
};

std::vector<Case> cases(const std::string& kind) {
  std::vector<Case> found;
  const auto kit = parse_json<nlohmann::ordered_json>(test::hard_files_index());
  for (const auto& [file, entry] : kit.at("files").items()) {
    if (entry.at("kind") == kind)
      found.push_back({file, entry.value("meaning", ""), entry.at("expect") == "ok"});
  }
  return found;
}

std::string name_of(const ::testing::TestParamInfo<Case>& info) {
  std::string name = fs::path(info.param.file).parent_path().filename().string();
  std::erase_if(name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '_'; });
  return name;
}

/// Runs `read`, which must refuse the file by its place.
template <typename Read>
void expect_refused(const fs::path& path, const Read& read) {
  try {
    read();
    FAIL() << path << ": no refusal";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
  } catch (const CorruptData& error) {
    EXPECT_THAT(error.what(), HasSubstr(path.string()));
  }
}

class HardConfigTest : public ::testing::TestWithParam<Case> {};

TEST_P(HardConfigTest, EndsAsTheKitStates) {
  const fs::path path = test::hard_files_kit() / GetParam().file;
  const fs::path tokenizer = path.parent_path() / "tokenizer.json";
  if (!GetParam().good && !fs::exists(tokenizer)) {
    expect_refused(path, [&] { (void)weights::read_language_config(path); });
    return;
  }
  const auto options = weights::read_language_config(path);
  EXPECT_EQ(options.width, 64);
  EXPECT_EQ(options.kv_heads, 2);
  if (GetParam().meaning == "linear, factor 2") {
    EXPECT_EQ(options.rope_scaling, "linear");
    EXPECT_EQ(options.rope_factor, 2.0);
  }
  // Good by itself: what is refused is a run with both files, which names model.vocabulary (e2e, VerbsTest).
  if (!GetParam().good) {
    EXPECT_LT(options.vocabulary, text::open_tokenizer(tokenizer)->vocabulary_size());
  }
}

class HardTokenizerTest : public ::testing::TestWithParam<Case> {};

TEST_P(HardTokenizerTest, EndsAsTheKitStates) {
  const fs::path path = test::hard_files_kit() / GetParam().file;
  if (!GetParam().good) {
    expect_refused(path, [&] { (void)text::open_tokenizer(path); });
    return;
  }
  const auto tokenizer = text::open_tokenizer(path);
  EXPECT_GE(tokenizer->vocabulary_size(), 42);
  for (const int32_t id : tokenizer->encode("the")) EXPECT_LT(id, tokenizer->vocabulary_size());
}

INSTANTIATE_TEST_SUITE_P(Kit, HardConfigTest, ::testing::ValuesIn(cases("model-config")), name_of);
INSTANTIATE_TEST_SUITE_P(Kit, HardTokenizerTest, ::testing::ValuesIn(cases("tokenizer")), name_of);

TEST(HardModelsTest, AllOfTheKitIsTried) {
  EXPECT_EQ(cases("model-config").size(), 14U);
  EXPECT_EQ(cases("tokenizer").size(), 14U);
}

}  // namespace
}  // namespace chiliad
