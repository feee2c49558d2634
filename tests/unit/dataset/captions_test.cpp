#include <gtest/gtest.h>

#include <map>
#include <string>

#include "chiliad/dataset/detail/captions.h"
#include "chiliad/index/columns.h"

namespace chiliad::dataset::detail {
namespace {

std::map<std::string, std::string> stamp(const std::string& text) {
  std::map<std::string, std::string> captions;
  for (const CaptionRange& c : tuxpaint_captions(text)) {
    captions[index::language_name(c.language)] = text.substr(c.offset, c.length);
  }
  return captions;
}

std::string plain(const std::string& text) {
  const auto captions = plain_captions(text);
  return captions.empty() ? "none" : text.substr(captions[0].offset, captions[0].length);
}

using Captions = std::map<std::string, std::string>;

TEST(TuxpaintCaptionsTest, ReadsEnglishAndOtherLines) {
  EXPECT_EQ(stamp("A cat.\nde.utf8=Eine Katze.\r\nson.utf8=X\n"),
            (Captions{{"en", "A cat."}, {"de", "Eine Katze."}, {"son", "X"}}));
}

TEST(TuxpaintCaptionsTest, TakesMainlandChineseAsChinese) {
  EXPECT_EQ(stamp("A\nzh_CN.utf8=M\nzh_TW.utf8=T\n"), (Captions{{"en", "A"}, {"zh", "M"}}));
}

TEST(TuxpaintCaptionsTest, LeavesVariantsOut) {
  EXPECT_EQ(stamp("A\nen_GB.utf8=B\npt_BR.utf8=C\nsr@latin.utf8=D\n"), (Captions{{"en", "A"}}));
}

TEST(TuxpaintCaptionsTest, FirstLineOfALanguageCounts) {
  EXPECT_EQ(stamp("A\nde.utf8=B\nde.utf8=C\nen.utf8=D\n"), (Captions{{"en", "A"}, {"de", "B"}}));
}

TEST(TuxpaintCaptionsTest, AcceptsAMissingEnglishLine) {
  EXPECT_EQ(stamp("\nde.utf8=B"), (Captions{{"de", "B"}}));
}

TEST(TuxpaintCaptionsTest, PassesOverEmptyCaptions) {
  EXPECT_EQ(stamp("A\nde.utf8=  \n"), (Captions{{"en", "A"}}));
}

TEST(TuxpaintCaptionsTest, RemovesTheByteOrderMark) {
  EXPECT_EQ(stamp("\xEF\xBB\xBF"
                  "A\n"),
            (Captions{{"en", "A"}}));
}

TEST(TuxpaintCaptionsTest, TakesBytesThatAreNotUtf8) {
  EXPECT_EQ(stamp("caf\xE9\n"), (Captions{{"en", "caf\xE9"}}));
}

TEST(PlainCaptionTest, IsTheTrimmedText) {
  EXPECT_EQ(plain(" \r\n a red\nsquare \n"), "a red\nsquare");
}

TEST(PlainCaptionTest, IsNoneForBlankText) {
  EXPECT_EQ(plain("\xEF\xBB\xBF \n"), "none");
}

TEST(LayoutGuessTest, SeesLanguageLines) {
  EXPECT_TRUE(looks_like_tuxpaint("A\nde.utf8=B\n"));
}

TEST(LayoutGuessTest, TakesProseForPlain) {
  EXPECT_FALSE(looks_like_tuxpaint("a file of .utf8= text\nmore"));
}

}  // namespace
}  // namespace chiliad::dataset::detail
