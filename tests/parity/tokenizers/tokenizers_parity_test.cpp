// Ids and decoded texts of the kit's tokenizers, made by the reference library.
#include <gtest/gtest.h>

#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/text/tokenizer.h"
#include "tests/support/kits.h"

namespace chiliad::text {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

struct Case {
  std::string text;
  std::vector<int32_t> ids;
  std::vector<int32_t> ids_with_special;
  std::string decoded;
  std::string decoded_skip_special;
};

/// Null where the kind is not covered yet.
std::unique_ptr<Tokenizer> open_covered(const fs::path& folder) {
  try {
    return open_tokenizer(folder / "tokenizer.json");
  } catch (const InvalidInput& error) {
    if (std::string(error.what()).find("not covered yet") == std::string::npos) throw;
    return nullptr;
  }
}

std::vector<Case> read_cases(const fs::path& folder) {
  const Json corpus = Json::parse(io::read_text(folder.parent_path() / "corpus.json", 1 << 24));
  std::vector<Case> cases;
  std::ifstream lines(folder / "expected.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line);
    const auto decoded = json.at("decoded").get<std::string>();
    cases.push_back({corpus.at(cases.size()).get<std::string>(), json.at("ids"), json.at("ids_with_special"),
                     decoded, json.value("decoded_skip_special", decoded)});
  }
  EXPECT_EQ(cases.size(), corpus.size());
  return cases;
}

/// Calls check(tokenizer, case) for every string of every covered tokenizer of the kit.
template <typename Check>
void for_all_cases(const Check& check) {
  const fs::path kit = test::golden_kit() / "tokenizers";
  int num_tokenizers = 0;
  for (const auto& entry : fs::directory_iterator(kit)) {
    if (!entry.is_directory()) continue;
    const auto tokenizer = open_covered(entry.path());
    if (tokenizer == nullptr) {
      std::cout << "not covered: " << entry.path().filename().string() << "\n";
      continue;
    }
    ++num_tokenizers;
    SCOPED_TRACE(entry.path().filename().string());
    for (const Case& one : read_cases(entry.path())) {
      SCOPED_TRACE(Json(one.text).dump());
      check(*tokenizer, one);
    }
  }
  EXPECT_GE(num_tokenizers, 3);
}

TEST(TokenizersParityTest, EncodesAsTheReference) {
  for_all_cases(
      [](const Tokenizer& tokenizer, const Case& one) { EXPECT_EQ(tokenizer.encode(one.text), one.ids); });
}

TEST(TokenizersParityTest, FramesAsTheReference) {
  for_all_cases([](const Tokenizer& tokenizer, const Case& one) {
    EXPECT_EQ(tokenizer.encode_with_special(one.text), one.ids_with_special);
  });
}

TEST(TokenizersParityTest, DecodesAsTheReference) {
  for_all_cases([](const Tokenizer& tokenizer, const Case& one) {
    EXPECT_EQ(tokenizer.decode(one.ids, false), one.decoded);
  });
}

TEST(TokenizersParityTest, SkipsSpecialTokensAsTheReference) {
  for_all_cases([](const Tokenizer& tokenizer, const Case& one) {
    EXPECT_EQ(tokenizer.decode(one.ids, true), one.decoded_skip_special);
  });
}

}  // namespace
}  // namespace chiliad::text
