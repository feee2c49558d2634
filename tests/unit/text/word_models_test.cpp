// WordPiece, unigram and the charsmap by themselves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "chiliad/base/error.h"
#include "chiliad/text/detail/charsmap.h"
#include "chiliad/text/detail/unigram.h"
#include "chiliad/text/detail/word_piece.h"

namespace chiliad::text::detail {
namespace {

using Ids = std::vector<int32_t>;

BpeParts parts_of(const std::vector<std::string>& tokens) {
  BpeParts parts;
  for (size_t id = 0; id < tokens.size(); ++id)
    parts.vocabulary.emplace_back(tokens[id], static_cast<int32_t>(id));
  return parts;
}

Ids encode(const WordModel& model, std::string_view word) {
  Ids ids;
  model.encode(word, ids);
  return ids;
}

WordPiece small_word_piece(int64_t max_characters = 100) {
  BpeParts parts = parts_of({"[UNK]", "un", "##able", "##ab", "##le", "u", "\xC3\xA4", "##\xC3\xA4"});
  parts.unknown = "[UNK]";
  parts.continuing_prefix = "##";
  return {parts, max_characters, "here"};
}

TEST(WordPieceTest, TakesTheLongestTokenEachTime) {
  EXPECT_EQ(encode(small_word_piece(), "unable"), (Ids{1, 2}));
}

TEST(WordPieceTest, UnknownRestMakesTheWholeWordUnknown) {
  EXPECT_EQ(encode(small_word_piece(), "unx"), Ids{0});
}

TEST(WordPieceTest, ContinuingTokensBeginNoWord) {
  EXPECT_EQ(encode(small_word_piece(), "able"), Ids{0});
}

TEST(WordPieceTest, CutsBetweenCharacters) {
  EXPECT_EQ(encode(small_word_piece(), "\xC3\xA4\xC3\xA4"), (Ids{6, 7}));
}

TEST(WordPieceTest, CountsTheLimitInCharacters) {
  EXPECT_EQ(encode(small_word_piece(2), "\xC3\xA4\xC3\xA4"), (Ids{6, 7}));
  EXPECT_EQ(encode(small_word_piece(1), "\xC3\xA4\xC3\xA4"), Ids{0});
}

TEST(WordPieceTest, RefusesAnUnknownTokenThatIsNone) {
  BpeParts parts = parts_of({"a"});
  parts.unknown = "[UNK]";
  EXPECT_THROW(WordPiece(parts, 100, "here"), InvalidInput);
}

Unigram small_unigram(std::vector<double> scores, bool byte_fallback = false) {
  BpeParts parts = parts_of({"<unk>", "a", "b", "ab", "<0x78>"});
  parts.byte_fallback = byte_fallback;
  UnigramParts unigram;
  unigram.scores = std::move(scores);
  unigram.unknown = 0;
  return {parts, unigram, "here"};
}

TEST(UnigramTest, TakesTheCutOfTheLargestSum) {
  EXPECT_EQ(encode(small_unigram({0, -1, -1, -3, -9}), "ab"), (Ids{1, 2}));
  EXPECT_EQ(encode(small_unigram({0, -1, -1, -1.5, -9}), "ab"), Ids{3});
}

TEST(UnigramTest, UnknownNeighboursAreOneToken) {
  EXPECT_EQ(encode(small_unigram({0, -1, -1, -3, -9}), "ayzb"), (Ids{1, 0, 2}));
}

TEST(UnigramTest, FallsBackToBytesThatAreThere) {
  EXPECT_EQ(encode(small_unigram({0, -1, -1, -3, -9}, true), "axb"), (Ids{1, 4, 2}));
  EXPECT_EQ(encode(small_unigram({0, -1, -1, -3, -9}, true), "ayb"), (Ids{1, 0, 2}));
}

TEST(UnigramTest, TokensOfNoScoreAreNotCutOut) {
  const double never = -std::numeric_limits<double>::infinity();
  BpeParts parts = parts_of({"<unk>", "a", "<s>"});
  UnigramParts unigram;
  unigram.scores = {never, -1, never};
  unigram.unknown = 0;
  unigram.unknown_score = -11;
  EXPECT_EQ(encode(Unigram(parts, unigram, "here"), "a<s>"), (Ids{1, 0}));
}

TEST(UnigramTest, RefusesAnUnknownIdThatIsNone) {
  BpeParts parts = parts_of({"a"});
  UnigramParts unigram;
  unigram.scores = {0.0};
  unigram.unknown = 7;
  EXPECT_THROW(Unigram(parts, unigram, "here"), InvalidInput);
}

/// A double array of two keys: "a" -> "x", "ab" -> "yz".
std::string small_charsmap() {
  std::array<uint32_t, 512> units{};
  const auto node = [](uint32_t offset, bool leaf, uint32_t label) {
    return offset << 10U | (leaf ? 1U << 8U : 0U) | label;
  };
  units[0] = node(1, false, 0);             // children at 1 ^ byte
  units[1 ^ 'a'] = node(0x100, true, 'a');  // its children at 96 ^ 0x100 ^ byte, its value at byte 0
  const uint32_t a = (1 ^ 'a') ^ 0x100;
  units[a] = 0;  // value: begin of "x"
  units[a ^ 'b'] = node(0x3, true, 'b');
  units[(a ^ 'b') ^ 0x3] = 2;  // begin of "yz"
  std::string bytes;
  const auto add = [&](uint32_t word) {
    for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(word >> shift & 0xFFU);
  };
  add(static_cast<uint32_t>(units.size() * 4));
  for (const uint32_t unit : units) add(unit & 0x7FFFFFFFU);
  return bytes + std::string("x\0yz\0", 5);
}

TEST(CharsmapTest, ReplacesCharacters) {
  EXPECT_EQ(Charsmap(small_charsmap(), "here").normalize("cad"), "cxd");
}

TEST(CharsmapTest, FindsTheLongestBeginning) {
  const Charsmap map(small_charsmap(), "here");
  const auto found = map.longest_replacement("abc");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->length, 2u);
  EXPECT_EQ(found->text, "yz");
}

TEST(CharsmapTest, FindsNothingForOtherText) {
  EXPECT_FALSE(Charsmap(small_charsmap(), "here").longest_replacement("ba").has_value());
}

TEST(CharsmapTest, RefusesCutBytes) {
  for (const size_t length : {size_t{0}, size_t{3}, size_t{4}, size_t{100}})
    EXPECT_THROW(Charsmap(small_charsmap().substr(0, length), "here"), InvalidInput) << length;
}

TEST(CharsmapTest, SurvivesEveryChangedWord) {
  const std::string whole = small_charsmap();
  for (size_t at = 4; at < whole.size(); ++at) {
    std::string changed = whole;
    changed[at] = static_cast<char>(changed[at] ^ 0xFF);
    const Charsmap map(changed, "here");
    EXPECT_LT(map.normalize("abcab").size(), 100u);
  }
}

TEST(CharsmapTest, ReadsBase64) {
  EXPECT_EQ(from_base64("YWJj"), "abc");
  EXPECT_EQ(from_base64("YWI="), "ab");
  EXPECT_EQ(from_base64("Y!"), std::nullopt);
}

}  // namespace
}  // namespace chiliad::text::detail
