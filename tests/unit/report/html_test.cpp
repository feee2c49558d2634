#include "chiliad/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chiliad::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST(HtmlTest, EscapesWhatEndsTextAndAttributes) {
  EXPECT_EQ(escape("<a href='x' title=\"y\">&"), "&lt;a href=&#39;x&#39; title=&quot;y&quot;&gt;&amp;");
}

TEST(HtmlTest, ReplacesControlCharacters) {
  EXPECT_EQ(escape(std::string_view("a\0b\x1b", 4)),
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
}

TEST(HtmlTest, ForeignTextKeepsItsDirectionToItself) {
  EXPECT_EQ(foreign_text("\xE2\x80\xAE<b>"), "<bdi>\xE2\x80\xAE&lt;b&gt;</bdi>");
}

TEST(HtmlTest, PicturesAreInsideThePage) {
  EXPECT_THAT(picture(bytes_of("abcd"), "a \"cat\""), HasSubstr("src=\"data:image/png;base64,YWJjZA==\""));
  EXPECT_THAT(picture(bytes_of("abc"), "a \"cat\""), HasSubstr("base64,YWJj\""));
  EXPECT_THAT(picture(bytes_of("abc"), "a \"cat\""), HasSubstr("alt=\"a &quot;cat&quot;\""));
}

TEST(HtmlTest, TablesEscapeTheirCells) {
  Table table({"name"});
  table.add({"<script>"});
  EXPECT_THAT(table.to_html(), HasSubstr("<bdi>&lt;script&gt;</bdi>"));
}

TEST(HtmlTest, APageForbidsEverythingFromElsewhere) {
  const auto page = whole_page("<title>", "<p>body</p>");
  EXPECT_THAT(page, HasSubstr("default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<title>&lt;title&gt;</title>"));
  EXPECT_THAT(page, HasSubstr("prefers-color-scheme:dark"));
  EXPECT_THAT(page, Not(HasSubstr("<script")));
}

}  // namespace
}  // namespace chiliad::report
