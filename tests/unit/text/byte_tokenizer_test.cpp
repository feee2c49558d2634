#include "chiliad/text/byte_tokenizer.h"

#include <gtest/gtest.h>

#include <string>

namespace chiliad::text {
namespace {

std::string decode(const std::vector<int32_t>& ids) {
  std::string text;
  for (const int32_t id : ids) text.push_back(static_cast<char>(id - 2));
  return text;
}

std::string repaired(std::string text) {
  (void)repair_utf8(text);
  return text;
}

TEST(ByteTokenizerTest, MapsBytesToIdsBehindPadAndNull) {
  EXPECT_EQ(ByteTokenizer(8).encode("A\xC3\xA9"), (std::vector<int32_t>{0x41 + 2, 0xC3 + 2, 0xA9 + 2}));
}

TEST(ByteTokenizerTest, EmptyTextIsTheNullCaption) {
  EXPECT_EQ(ByteTokenizer(8).encode(""), std::vector<int32_t>{ByteTokenizer::kNull});
}

TEST(ByteTokenizerTest, DecodesWhatItEncoded) {
  EXPECT_EQ(ByteTokenizer::decode(ByteTokenizer(64).encode("a <b> \xE2\x82\xAC")), "a <b> \xE2\x82\xAC");
}

TEST(ByteTokenizerTest, PaddingAndTheNullCaptionHaveNoText) {
  EXPECT_EQ(
      ByteTokenizer::decode(std::vector<int32_t>{ByteTokenizer::kNull, 'x' + 2, ByteTokenizer::kPad, 9999}),
      "x");
}

TEST(ByteTokenizerTest, NeverCutsACharacter) {
  EXPECT_EQ(decode(ByteTokenizer(4).encode("ab\xE2\x82\xAC")), "ab");
}

TEST(ByteTokenizerTest, FillsTheLimitExactly) {
  EXPECT_EQ(decode(ByteTokenizer(5).encode("ab\xE2\x82\xAC!")), "ab\xE2\x82\xAC");
}

TEST(ByteTokenizerTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(decode(ByteTokenizer(64).encode("it\x92s")), "it\xEF\xBF\xBDs");
}

TEST(ByteTokenizerTest, KeepsNulBytes) {
  EXPECT_EQ(ByteTokenizer(8).encode(std::string_view("a\0b", 3)).size(), 3U);
}

TEST(ByteTokenizerTest, CutsALongCaptionAtTheLimit) {
  EXPECT_EQ(ByteTokenizer(128).encode(std::string(1 << 20, 'x')).size(), 128U);
}

TEST(ByteTokenizerTest, DigestNamesTheLimit) {
  EXPECT_NE(ByteTokenizer(8).digest(), ByteTokenizer(9).digest());
}

TEST(RepairTest, LeavesGoodTextAlone) {
  std::string text = "caf\xC3\xA9 \xF0\x9F\x98\x80";
  EXPECT_FALSE(repair_utf8(text));
  EXPECT_EQ(text, "caf\xC3\xA9 \xF0\x9F\x98\x80");
}

TEST(RepairTest, RemovesALeadingByteOrderMark) {
  EXPECT_EQ(repaired("\xEF\xBB\xBFred"), "red");
}

TEST(RepairTest, SaysThatItReplaced) {
  std::string text = "\xE9";
  EXPECT_TRUE(repair_utf8(text));
}

// As in the Unicode Standard's recommendation: one U+FFFD a maximal subpart.
TEST(RepairTest, ReplacesACutCharacterOnce) {
  EXPECT_EQ(repaired("\xF0\x9F\x98z"), "\xEF\xBF\xBDz");
}

TEST(RepairTest, RefusesSurrogates) {
  EXPECT_EQ(repaired("\xED\xA0\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(RepairTest, RefusesOverlongForms) {
  EXPECT_EQ(repaired("\xC0\xAF"), "\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(RepairTest, RefusesValuesAboveTheRange) {
  EXPECT_EQ(repaired("\xF4\x90\x80\x80"), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
}

}  // namespace
}  // namespace chiliad::text
