// Tokenizers without a tokenizer.json: vocab.txt, vocab.json with merges.txt, SentencePiece models.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/text/tokenizer.h"
#include "tests/support/temp_dir.h"

namespace chiliad::text {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::HasSubstr;

class VocabularyFilesTest : public testing::Test {
 protected:
  void write(const char* name, const std::string& text) const {
    auto file = io::File::create(dir_.path() / name);
    file.write(text);
    file.close();
  }
  [[nodiscard]] std::unique_ptr<Tokenizer> open() const { return open_tokenizer(dir_.path()); }
  [[nodiscard]] std::string refusal() const {
    try {
      (void)open();
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
  test::TempDir dir_;
};

constexpr const char* kBert = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nab\n##c\nAB\n";

TEST_F(VocabularyFilesTest, FolderWithoutTokenizerIsRefused) {
  EXPECT_THAT(refusal(), HasSubstr("expected tokenizer.json, vocab.txt, vocab.json with merges.txt"));
}

TEST_F(VocabularyFilesTest, BertLowersWhereNothingIsSaid) {
  write("vocab.txt", kBert);
  EXPECT_EQ(open()->encode_with_special("ABc"), (Ids{2, 4, 5, 3}));
}

TEST_F(VocabularyFilesTest, BertKeepsTheCaseWhereTheConfigSaysSo) {
  write("vocab.txt", kBert);
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_EQ(open()->encode("ABc"), (Ids{6, 5}));
}

TEST_F(VocabularyFilesTest, BertSpecialTokensAreCutOut) {
  write("vocab.txt", kBert);
  EXPECT_EQ(open()->encode("ab[SEP]ab"), (Ids{4, 3, 4}));
}

TEST_F(VocabularyFilesTest, BertReadsLinesOfWindows) {
  write("vocab.txt", "[UNK]\r\n[CLS]\r\n[SEP]\r\nab\r\n");
  EXPECT_EQ(open()->encode("ab"), Ids{3});
}

TEST_F(VocabularyFilesTest, BertWithoutFrameTokensIsRefused) {
  write("vocab.txt", "[UNK]\nab\n");
  EXPECT_THAT(refusal(), HasSubstr("vocab.txt: expected the token '[CLS]' that frames texts, got none"));
}

TEST_F(VocabularyFilesTest, BertOfOtherFrameTokensReadsThemFromTheConfig) {
  write("vocab.txt", "<unk>\n<s>\n</s>\nab\n");
  write("tokenizer_config.json",
        R"({"cls_token": {"content": "<s>"}, "sep_token": "</s>", "unk_token": "<unk>"})");
  EXPECT_EQ(open()->encode_with_special("ab x"), (Ids{1, 3, 0, 2}));
}

TEST_F(VocabularyFilesTest, BadConfigValuesAreNamed) {
  write("vocab.txt", kBert);
  write("tokenizer_config.json", R"({"do_lower_case": 1})");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer_config.json: do_lower_case: expected true or false, got 1"));
}

TEST_F(VocabularyFilesTest, TokensThatWereAddedLaterAreRead) {
  write("vocab.txt", kBert);
  write("added_tokens.json", R"({"<new>": 7})");
  EXPECT_EQ(open()->encode("ab<new>"), (Ids{4, 7}));
}

TEST_F(VocabularyFilesTest, TextThatIsNotUtf8IsRefused) {
  write("vocab.txt", "[UNK]\n\xFF\n");
  EXPECT_THAT(refusal(), HasSubstr("expected UTF-8, got other bytes"));
}

TEST_F(VocabularyFilesTest, TokenizerJsonWins) {
  write("vocab.txt", kBert);
  write("tokenizer.json", "{");
  EXPECT_THAT(refusal(), HasSubstr("tokenizer.json"));
}

TEST_F(VocabularyFilesTest, DigestNamesTheConfigToo) {
  write("vocab.txt", kBert);
  const Digest before = open()->digest();
  write("tokenizer_config.json", R"({"do_lower_case": false})");
  EXPECT_NE(open()->digest(), before);
}

TEST_F(VocabularyFilesTest, ClipIsKnownByItsWordEnds) {
  write("vocab.json", R"({"a": 0, "b": 1, "a</w>": 2, "b</w>": 3, "ab</w>": 4,
                          "<|startoftext|>": 5, "<|endoftext|>": 6})");
  write("merges.txt", "#version: 0.2\na b</w>\n");
  EXPECT_EQ(open()->encode_with_special("AB  b"), (Ids{5, 4, 3, 6}));
}

TEST_F(VocabularyFilesTest, MergesOfAnUnknownClassAreRefused) {
  write("vocab.json", R"({"a": 0})");
  write("merges.txt", "#version: 0.2\n");
  write("tokenizer_config.json", R"({"tokenizer_class": "MarianTokenizer"})");
  EXPECT_THAT(refusal(),
              HasSubstr("tokenizer_class: expected CLIPTokenizer, GPT2Tokenizer or Qwen2Tokenizer"));
}

TEST_F(VocabularyFilesTest, MissingMergesAreRefused) {
  write("vocab.json", R"({"a</w>": 0})");
  EXPECT_THAT(refusal(), HasSubstr("merges.txt"));
}

TEST_F(VocabularyFilesTest, FitsTextsAndKeepsTheFrame) {
  write("vocab.txt", kBert);
  const auto tokenizer = open();
  EXPECT_EQ(fit_tokens(*tokenizer, "abc abc abc", 5), (Ids{2, 4, 5, 4, 3}));
  EXPECT_EQ(fit_tokens(*tokenizer, "abc", 4), (Ids{2, 4, 5, 3}));
  EXPECT_EQ(fit_tokens(*tokenizer, "abc", 2), (Ids{2, 3}));
}

TEST_F(VocabularyFilesTest, RefusesToCutTheFrame) {
  write("vocab.txt", kBert);
  EXPECT_THROW((void)fit_tokens(*open(), "abc", 1), InvalidInput);
}

// The wire format of protocol buffers, by hand.
std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7FU) | 0x80U);
  return out + static_cast<char>(value);
}
std::string number(uint32_t field, uint64_t value) {
  return varint(field << 3U) + varint(value);
}
std::string bytes(uint32_t field, const std::string& value) {
  return varint(field << 3U | 2U) + varint(value.size()) + value;
}
std::string piece(const std::string& content, float score, int kind = 1) {
  std::string word;
  for (unsigned shift = 0; shift < 32; shift += 8)
    word += static_cast<char>(std::bit_cast<uint32_t>(score) >> shift & 0xFFU);
  return bytes(1, bytes(1, content) + varint(2U << 3U | 5U) + word + number(3, static_cast<uint64_t>(kind)));
}

constexpr int kUnigram = 1;
constexpr int kBpe = 2;
constexpr const char* kMark = "\xE2\x96\x81";

std::string small_model(int type, const std::string& trainer = "", const std::string& normalizer = "") {
  return piece("<unk>", 0, 2) + piece("<s>", 0, 3) + piece("</s>", 0, 3) + piece(kMark, -1) + piece("a", -2) +
         piece("b", -3) + piece("ab", -1.5F) + piece("<x>", 0, 4) +
         bytes(2, number(3, static_cast<uint64_t>(type)) + trainer) + bytes(3, normalizer);
}

class PieceModelTest : public VocabularyFilesTest, public testing::WithParamInterface<int> {};

TEST_P(PieceModelTest, EncodesWithTheMarkOfAWord) {
  write("spiece.model", small_model(GetParam()));
  EXPECT_EQ(open()->encode("ab  b "), (Ids{3, 6, 3, 5}));
}

TEST_P(PieceModelTest, KeepsSpacesWhereTheModelDoes) {
  write("spiece.model", small_model(GetParam(), "", number(4, 0)));
  EXPECT_EQ(open()->encode("a  b "), (Ids{3, 4, 3, 3, 5, 3}));
}

TEST_P(PieceModelTest, AddsNoPrefixWhereTheModelDoesNot) {
  write("spiece.model", small_model(GetParam(), "", number(3, 0)));
  EXPECT_EQ(open()->encode("a b"), (Ids{4, 3, 5}));
}

TEST_P(PieceModelTest, ControlPiecesAreInNoText) {
  write("spiece.model", small_model(GetParam()));
  EXPECT_EQ(open()->encode("a<s>"), (Ids{3, 4, 0}));
}

TEST_P(PieceModelTest, UserDefinedPiecesAreTakenWhole) {
  write("spiece.model", small_model(GetParam()));
  EXPECT_EQ(open()->encode("a<x>b"), (Ids{3, 4, 7, 5}));
}

TEST_P(PieceModelTest, DecodesWithoutTheFirstSpace) {
  write("spiece.model", small_model(GetParam()));
  EXPECT_EQ(open()->decode(Ids{1, 3, 6, 3, 5, 0, 99}, true), "ab b \xE2\x81\x87 ");
}

TEST_P(PieceModelTest, SurvivesEveryTruncation) {
  const std::string whole = small_model(GetParam());
  for (size_t length = 0; length < whole.size(); ++length) {
    write("spiece.model", whole.substr(0, length));
    try {
      (void)open()->encode("ab <x>");
    } catch (const InvalidInput&) {  // the other good outcome
    }
  }
}

TEST_P(PieceModelTest, SurvivesEveryChangedByte) {
  const std::string whole = small_model(GetParam());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    write("spiece.model", changed);
    try {
      const auto tokenizer = open();
      (void)tokenizer->decode(tokenizer->encode("ab <x>"), false);
    } catch (const InvalidInput&) {  // the other good outcome
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PieceModelTest, testing::Values(kUnigram, kBpe));

TEST_F(VocabularyFilesTest, PiecesAreFramedAsTheConfigSays) {
  write("spiece.model", small_model(kUnigram));
  EXPECT_EQ(open()->encode_with_special("a"), (Ids{3, 4}));
  write("tokenizer_config.json", R"({"tokenizer_class": "T5Tokenizer"})");
  EXPECT_EQ(open()->encode_with_special("a"), (Ids{3, 4, 2}));
  write("tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast", "add_eos_token": true})");
  EXPECT_EQ(fit_tokens(*open(), "aa", 3), (Ids{1, 3, 2}));
}

TEST_F(VocabularyFilesTest, PiecesFallBackToBytes) {
  write("tokenizer.model", piece("<unk>", 0, 2) + piece("<0xC3>", 0, 6) + piece("<0xA4>", 0, 6) +
                               piece(kMark, -1) + bytes(2, number(3, kBpe) + number(35, 1)));
  const auto tokenizer = open();
  EXPECT_EQ(tokenizer->encode("\xC3\xA4"), (Ids{3, 1, 2}));
  EXPECT_EQ(tokenizer->decode(Ids{3, 1, 2, 1}, false), "\xC3\xA4\xEF\xBF\xBD");
}

TEST_F(VocabularyFilesTest, EqualScoresMergeTheLeftmostFirst) {
  write("tokenizer.model", piece("<unk>", 0, 2) + piece("a", -9) + piece("aa", -1) + piece("aaa", -2) +
                               bytes(2, number(3, kBpe)) + bytes(3, number(3, 0)));
  EXPECT_EQ(open()->encode("aaaa"), (Ids{2, 2}));
  EXPECT_EQ(open()->encode("aaaaa"), (Ids{2, 3}));
}

TEST_F(VocabularyFilesTest, OtherModelTypesAreRefused) {
  write("spiece.model", small_model(3));
  EXPECT_THAT(refusal(), HasSubstr("model type 3 is not covered yet"));
}

TEST_F(VocabularyFilesTest, ModelsWithoutAnUnknownPieceAreRefused) {
  write("spiece.model", piece("a", 0));
  EXPECT_THAT(refusal(), HasSubstr("expected one unknown piece, got 0"));
}

}  // namespace
}  // namespace chiliad::text
