// Ids and decoded texts of the kit's tokenizers, made by the reference library.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "chiliad/io/file.h"
#include "chiliad/text/tokenizer.h"
#include "tests/support/kits.h"
#include "tests/support/temp_dir.h"

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
  const Json corpus = parse_json<Json>(io::read_text(folder.parent_path() / "corpus.json", 1 << 24));
  std::vector<Case> cases;
  std::ifstream lines(folder / "expected.jsonl");
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json<Json>(line);
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
      SCOPED_TRACE(json_text(Json(one.text)));
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

/// Calls check(folder) for every folder of the kit that has this file.
template <typename Check>
void for_folders_with(const char* file, const Check& check) {
  int found = 0;
  for (const auto& entry : fs::directory_iterator(test::golden_kit() / "tokenizers")) {
    if (!fs::exists(entry.path() / file)) continue;
    ++found;
    SCOPED_TRACE(entry.path().filename().string());
    check(entry.path());
  }
  EXPECT_GE(found, 1);
}

// The older files know no tokens that were added later; strings without them have the same ids.
void expect_same_ids(const fs::path& folder, const std::vector<const char*>& files) {
  const test::TempDir copy;
  for (const char* file : files) fs::copy_file(folder / file, copy.path() / file);
  const auto tokenizer = open_tokenizer(copy.path());
  int compared = 0;
  for (const Case& one : read_cases(folder)) {
    const bool is_known = std::all_of(one.ids.begin(), one.ids.end(),
                                      [&](int32_t id) { return id < tokenizer->vocabulary_size(); });
    if (!is_known) continue;
    ++compared;
    EXPECT_EQ(tokenizer->encode(one.text), one.ids) << json_text(Json(one.text));
    EXPECT_EQ(tokenizer->encode_with_special(one.text), one.ids_with_special) << json_text(Json(one.text));
    EXPECT_EQ(tokenizer->decode(one.ids, false), one.decoded) << json_text(Json(one.text));
  }
  EXPECT_GT(compared, 100);
}

TEST(TokenizersParityTest, ReadsVocabTxtAsTheReference) {
  for_folders_with("vocab.txt", [](const fs::path& folder) {
    expect_same_ids(folder, {"vocab.txt", "tokenizer_config.json"});
  });
}

TEST(TokenizersParityTest, ReadsVocabJsonWithMergesAsTheReference) {
  for_folders_with("merges.txt", [](const fs::path& folder) {
    const Json config = parse_json<Json>(io::read_text(folder / "tokenizer_config.json", 1 << 20));
    const auto kind = config.at("tokenizer_class").get<std::string>();
    if (kind != "CLIPTokenizer" && kind != "GPT2Tokenizer" && kind != "Qwen2Tokenizer") return;
    expect_same_ids(folder, {"vocab.json", "merges.txt", "tokenizer_config.json"});
  });
}

TEST(TokenizersParityTest, ReadsSentencePieceModelsAsTheReference) {
  for_folders_with("expected_model.jsonl", [](const fs::path& folder) {
    const bool is_t5 = fs::exists(folder / "spiece.model");
    const auto tokenizer = open_tokenizer(folder / (is_t5 ? "spiece.model" : "tokenizer.model"));
    const Json corpus = parse_json<Json>(io::read_text(folder.parent_path() / "corpus.json", 1 << 24));
    std::ifstream lines(folder / "expected_model.jsonl");
    size_t row = 0;
    for (std::string line; std::getline(lines, line); ++row) {
      const Json json = parse_json<Json>(line);
      const auto text = corpus.at(row).get<std::string>();
      const auto ids = json.at("ids").get<std::vector<int32_t>>();
      EXPECT_EQ(tokenizer->encode(text), ids) << json_text(corpus.at(row));
      EXPECT_EQ(tokenizer->decode(ids, false), json.at("decoded").get<std::string>())
          << json_text(corpus.at(row));
    }
    EXPECT_EQ(row, corpus.size());
  });
}

}  // namespace
}  // namespace chiliad::text
