// Tokenizer files that are damaged, hostile, or of kinds that are not covered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "tests/unit/text/tokenizer_json.h"

namespace chiliad::text {
namespace {

using nlohmann::json;
using test::refusal_of;
using test::refusal_with;
using ::testing::HasSubstr;

TEST(TokenizerFileTest, OpensTheSmallOne) {
  EXPECT_EQ(refusal_of(json_text(test::small_tokenizer())), "");
}

TEST(TokenizerFileTest, RefusesAMissingFile) {
  EXPECT_THROW((void)open_tokenizer("/nowhere/tokenizer.json"), InvalidInput);
}

TEST(TokenizerFileTest, RefusesEveryTruncation) {
  const std::string whole = json_text(test::small_tokenizer());
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_NE(refusal_of(whole.substr(0, length)), "") << length;
}

TEST(TokenizerFileTest, SurvivesEveryFlippedByte) {
  const std::string whole = json_text(test::small_tokenizer());
  for (size_t at = 0; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0x11);
    try {
      (void)test::open_text(changed)->encode("abc <end> cba");
    } catch (const InvalidInput&) {  // the other good outcome
    }
  }
}

// Every value of the file in turn becomes a value of another type.
TEST(TokenizerFileTest, SurvivesWrongTypesEverywhere) {
  const json flat = test::small_tokenizer().flatten();
  for (const auto& [pointer, value] : flat.items()) {
    for (const json& wrong :
         {json(nullptr), json(-1), json(1.5), json("x"), json::array({1}), json::object()}) {
      json changed = test::small_tokenizer();
      changed[json::json_pointer(pointer)] = wrong;
      try {
        (void)test::open_json(changed)->encode("abc <end> cba");
      } catch (const InvalidInput&) {  // the other good outcome
      }
    }
  }
}

TEST(TokenizerFileTest, NamesAModelThatIsNotCovered) {
  EXPECT_THAT(refusal_with("/model/type", "WordLevel"),
              HasSubstr("tokenizer.json: model: a model of type WordLevel is not covered yet"));
}

TEST(TokenizerFileTest, NamesAStepThatIsNotCovered) {
  EXPECT_THAT(refusal_with("/pre_tokenizer", {{"type", "Digits"}}),
              HasSubstr("pre_tokenizer: a pre-tokenizer of type Digits is not covered yet"));
}

TEST(TokenizerFileTest, RefusesRandomMerges) {
  EXPECT_THAT(refusal_with("/model/dropout", 0.1), HasSubstr("model.dropout: random dropping of merges"));
}

TEST(TokenizerFileTest, NamesMergesOfUnknownTokens) {
  EXPECT_THAT(refusal_with("/model/merges/1", "a x"),
              HasSubstr("model.merges[1]: expected tokens of the vocabulary, got 'x' in 'a' + 'x'"));
}

TEST(TokenizerFileTest, NamesMergesWhoseResultIsUnknown) {
  EXPECT_THAT(refusal_with("/model/merges/1", "b a"), HasSubstr("got 'ba' in 'b' + 'a'"));
}

TEST(TokenizerFileTest, NamesMergesThatAreNoPairs) {
  EXPECT_THAT(refusal_with("/model/merges/0", "b c d"), HasSubstr("model.merges[0]: expected two tokens"));
}

TEST(TokenizerFileTest, RefusesIdsOutOfRange) {
  for (const json& id : {json(-1), json(1 << 22), json(uint64_t{1} << 63U), json(2.0)})
    EXPECT_THAT(refusal_with("/model/vocab/a", id), HasSubstr("model.vocab.a: expected an integer"));
}

TEST(TokenizerFileTest, RefusesTwoTokensOfOneId) {
  EXPECT_THAT(refusal_with("/model/vocab/a", 1), HasSubstr("model.vocab: expected one token an id"));
}

TEST(TokenizerFileTest, RefusesAnAddedTokenWithTheIdOfAnother) {
  EXPECT_THAT(refusal_with("/added_tokens/0/id", 2), HasSubstr("added_tokens[0]: expected one id a content"));
}

TEST(TokenizerFileTest, RefusesAnAddedTokenWithAnotherIdThanInTheVocabulary) {
  EXPECT_THAT(refusal_with("/added_tokens/0/content", "a"), HasSubstr("expected one id a content"));
}

TEST(TokenizerFileTest, RefusesAnEmptyAddedToken) {
  EXPECT_THAT(refusal_with("/added_tokens/0/content", ""),
              HasSubstr("added_tokens[0]: content: expected 1 to"));
}

TEST(TokenizerFileTest, RefusesAFrameOfUnknownIds) {
  EXPECT_THAT(refusal_with("/post_processor/special_tokens/<end>/ids/0", 99),
              HasSubstr("post_processor: expected ids of tokens, got 99"));
}

TEST(TokenizerFileTest, RefusesAFrameWithoutTheText) {
  json changed = test::small_tokenizer();
  changed["post_processor"]["single"].erase(0);
  EXPECT_THAT(refusal_of(json_text(changed)),
              HasSubstr("post_processor.single: expected the sequence A, once"));
}

TEST(TokenizerFileTest, RefusesAnUnknownTokenThatIsNone) {
  EXPECT_THAT(refusal_with("/model/unk_token", "<unk>"), HasSubstr("model.unk_token: expected a token"));
}

TEST(TokenizerFileTest, RefusesABrokenExpression) {
  EXPECT_THAT(refusal_with("/pre_tokenizer", parse_json<json>(R"({"type": "Split", "behavior": "Isolated",
                                                             "pattern": {"Regex": "(a"}})")),
              HasSubstr("pre_tokenizer.pattern.Regex: expression '(a'"));
}

TEST(TokenizerFileTest, RefusesDeepNesting) {
  EXPECT_THAT(refusal_of(std::string(1 << 20, '[')), HasSubstr("expected nesting of at most 32"));
}

TEST(TokenizerFileTest, RefusesDeepSequences) {
  json step = {{"type", "NFC"}};
  for (int i = 0; i < 40; ++i) step = {{"type", "Sequence"}, {"normalizers", {step}}};
  EXPECT_THAT(refusal_with("/normalizer", step), HasSubstr("expected nesting of at most 32"));
}

TEST(TokenizerFileTest, RefusesManySteps) {
  EXPECT_THAT(
      refusal_with("/normalizer", {{"type", "Sequence"}, {"normalizers", json(1000, {{"type", "NFC"}})}}),
      HasSubstr("normalizer.normalizers: expected at most 32 elements"));
}

}  // namespace
}  // namespace chiliad::text
