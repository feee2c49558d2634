#include "chiliad/text/tokenizer.h"
#include "chiliad/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "tests/unit/text/tokenizer_json.h"

namespace chiliad::text {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

json with(const char* pointer, const json& value) {
  json changed = test::small_tokenizer();
  changed[json::json_pointer(pointer)] = value;
  return changed;
}

TEST(TokenizerTest, MergesByRankAndNotFromTheLeft) {
  // b c has the least rank, so "abcb" is a bc b and then abc b.
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode("abcb"), (Ids{5, 1}));
}

TEST(TokenizerTest, MergesTheLeftmostOfEquals) {
  const auto tokenizer = test::open_json(
      with("/model", {{"type", "BPE"}, {"vocab", {{"a", 0}, {"aa", 1}}}, {"merges", {"a a"}}}));
  EXPECT_EQ(tokenizer->encode("aaa"), (Ids{1, 0}));
}

TEST(TokenizerTest, DropsCharactersWithoutTokenWhereNoneIsUnknown) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode("axb"), (Ids{3}));
}

TEST(TokenizerTest, EncodesNothingOfAnEmptyText) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode(""), Ids{});
}

TEST(TokenizerTest, FramesAnEmptyText) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode_with_special(""), Ids{7});
}

TEST(TokenizerTest, CutsAddedTokensOut) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode("ab<end>c"), (Ids{3, 7, 2}));
}

TEST(TokenizerTest, TakesTheLongestAddedToken) {
  const auto tokenizer =
      test::open_json(with("/added_tokens/1", {{"id", 8}, {"content", "<end>c"}, {"special", true}}));
  EXPECT_EQ(tokenizer->encode("<end>c<end>"), (Ids{8, 7}));
}

TEST(TokenizerTest, LeavesASingleWordTokenInsideAWordAlone) {
  const auto tokenizer =
      test::open_json(with("/added_tokens/1", {{"id", 8}, {"content", "bb"}, {"single_word", true}}));
  EXPECT_EQ(tokenizer->encode("abb bb"), (Ids{3, 1, 6, 8}));
}

TEST(TokenizerTest, TakesSpacesBesideStrippingTokens) {
  const auto tokenizer = test::open_json(
      with("/added_tokens/1", {{"id", 8}, {"content", "|"}, {"lstrip", true}, {"rstrip", true}}));
  EXPECT_EQ(tokenizer->encode("a  |\n b"), (Ids{0, 8, 1}));
}

TEST(TokenizerTest, FindsNormalizedTokensInNormalizedText) {
  json changed = with("/normalizer", {{"type", "Lowercase"}});
  changed["added_tokens"][1] = {{"id", 8}, {"content", "CC"}, {"normalized", true}};
  EXPECT_EQ(test::open_json(changed)->encode("AcC"), (Ids{0, 8}));
}

TEST(TokenizerTest, ReadsMergesAsPairs) {
  EXPECT_EQ(test::open_json(with("/model/merges", parse_json<json>(R"([["a", "b"]])")))->encode("abc"),
            (Ids{3, 2}));
}

TEST(TokenizerTest, TakesWholeWordsBeforeMerges) {
  json changed = with("/model/ignore_merges", true);
  changed["model"]["merges"] = json::array();
  EXPECT_EQ(test::open_json(changed)->encode("abc ab"), (Ids{5, 6, 0, 1}));
}

TEST(TokenizerTest, DecodesWhatItEncoded) {
  const auto tokenizer = test::open_json(test::small_tokenizer());
  EXPECT_EQ(tokenizer->decode(tokenizer->encode("ab cab abc"), false), "ab cab abc");
}

TEST(TokenizerTest, LeavesIdsOfNoTokenOutOfTheText) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->decode(Ids{-1, 0, 99, 1 << 30}, false), "a");
}

TEST(TokenizerTest, SkipsSpecialTokensWhenAsked) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->decode(Ids{0, 7, 1}, true), "ab");
}

TEST(TokenizerTest, ReadsBrokenTextAsReplacementCharacters) {
  const auto tokenizer = test::open_json(with("/added_tokens/1", {{"id", 8}, {"content", "\xEF\xBF\xBD"}}));
  EXPECT_EQ(tokenizer->encode("a\xFF"), (Ids{0, 8}));
}

TEST(TokenizerTest, VocabularyEndsBehindTheLargestId) {
  EXPECT_EQ(test::open_json(with("/added_tokens/0/id", 40)
                                .patch(parse_json<json>(R"([{"op": "remove", "path": "/post_processor"}])")))
                ->vocabulary_size(),
            41);
}

TEST(TokenizerTest, KnowsIdsByContent) {
  const auto tokenizer = test::open_json(test::small_tokenizer());
  EXPECT_EQ(tokenizer->id_of("<end>"), 7);
  EXPECT_EQ(tokenizer->id_of("abc"), 5);
  EXPECT_EQ(tokenizer->id_of("nothing"), std::nullopt);
}

TEST(TokenizerTest, DigestNamesTheFile) {
  const auto tokenizer = test::open_json(test::small_tokenizer());
  EXPECT_EQ(tokenizer->digest(), test::open_json(test::small_tokenizer())->digest());
  EXPECT_NE(tokenizer->digest(), test::open_json(with("/model/merges", {"b c"}))->digest());
}

TEST(TokenizerTest, MergesALongWordWithoutQuadraticTime) {
  const auto tokenizer = test::open_json(
      with("/model",
           {{"type", "BPE"}, {"vocab", {{"a", 0}, {"aa", 1}, {"aaaa", 2}}}, {"merges", {"a a", "aa aa"}}}));
  EXPECT_EQ(tokenizer->encode(std::string(1 << 20, 'a')).size(), (1U << 20U) / 4);
}

TEST(TokenizerTest, ReadsLongRunsOfSpaces) {
  EXPECT_EQ(test::open_json(test::small_tokenizer())->encode(std::string(1 << 18, ' ') + "a").size(),
            (1U << 18U) + 1);
}

TEST(TokenizerTest, RefusesTextOnWhichAPatternGivesUp) {
  const auto tokenizer = test::open_json(with(
      "/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(a+a+)+$"}}}, {"behavior", "Isolated"}}));
  EXPECT_THROW((void)tokenizer->encode(std::string(4000, 'a') + "b"), InvalidInput);
}

}  // namespace
}  // namespace chiliad::text
