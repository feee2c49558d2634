#include "chiliad/text/document_encoder.h"
#include "chiliad/base/json_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/text/tokenizer_json.h"

namespace chiliad::text {
namespace {

using Ids = std::vector<int32_t>;
using ::testing::HasSubstr;

std::shared_ptr<const DocumentEncoder> open_small(const std::string& end_token, bool framed) {
  const test::TempDir folder;
  nlohmann::json json = test::small_tokenizer();
  if (!framed) json["post_processor"] = nullptr;
  io::write_atomic(folder.path() / "tokenizer.json", json_text(json));
  return DocumentEncoder::open((folder.path() / "tokenizer.json").string(), end_token);
}

TEST(DocumentEncoderTest, EndsADocumentOfBytes) {
  EXPECT_EQ(DocumentEncoder::open("", "")->encode("AB"), (Ids{0x41 + 2, 0x42 + 2, 1}));
}

TEST(DocumentEncoderTest, DoesNotCutBytes) {
  EXPECT_EQ(DocumentEncoder::open("", "")->encode(std::string(100'000, 'x')).size(), 100'001U);
}

TEST(DocumentEncoderTest, PutsTheEndTokenBehind) {
  EXPECT_EQ(open_small("<end>", false)->encode("ab"), (Ids{3, 7}));
}

TEST(DocumentEncoderTest, DoesNotRepeatTheEndOfTheFrame) {
  EXPECT_EQ(open_small("<end>", true)->encode("ab"), (Ids{3, 7}));
}

TEST(DocumentEncoderTest, KeepsTheFrameWithoutEndToken) {
  EXPECT_EQ(open_small("", true)->encode("ab"), (Ids{3, 7}));
}

TEST(DocumentEncoderTest, RefusesAnEndTokenThatIsNone) {
  EXPECT_THROW((void)open_small("<eos>", true), InvalidInput);
}

TEST(DocumentEncoderTest, DigestNamesTheEndToken) {
  EXPECT_NE(open_small("<end>", false)->digest(), open_small("", false)->digest());
}

TEST(LineDocumentTest, TakesTheTextField) {
  EXPECT_EQ(document_of_line(R"({"id": {"text": "no"}, "text": "a\nb", "more": [{"text": 1}]})").text,
            "a\nb");
}

TEST(LineDocumentTest, AllowsAnEmptyText) {
  const auto document = document_of_line(R"({"text": ""})");
  EXPECT_EQ(document.text + document.refusal, "");
}

TEST(LineDocumentTest, TakesTheLastOfRepeatedFields) {
  EXPECT_EQ(document_of_line(R"({"text": 1, "text": "b"})").text, "b");
}

TEST(LineDocumentTest, RepairsBrokenBytes) {
  EXPECT_EQ(document_of_line("{\"text\": \"a\xFF\"}").text, "a\xEF\xBF\xBD");
}

TEST(LineDocumentTest, NamesWhatIsWrong) {
  EXPECT_THAT(document_of_line(R"({"text": 5})").refusal, HasSubstr("text: expected a string, got a number"));
  EXPECT_THAT(document_of_line(R"({"body": "x"})").refusal, HasSubstr("string 'text', got none"));
  EXPECT_THAT(document_of_line(R"("text")").refusal, HasSubstr("got a string"));
  EXPECT_THAT(document_of_line(R"([{"text": "x"}])").refusal, HasSubstr("got an array"));
  EXPECT_THAT(document_of_line(R"({"text": "x"} y)").refusal, HasSubstr("expected one JSON object"));
  EXPECT_THAT(document_of_line(R"({"text": "\ud800"})").refusal, HasSubstr("expected one JSON object"));
}

TEST(LineDocumentTest, RefusesEveryTruncation) {
  const std::string line = R"({"a": [1, {"b": null}], "text": "x", "c": true})";
  for (size_t length = 0; length < line.size(); ++length)
    EXPECT_NE(document_of_line(line.substr(0, length)).refusal, "") << length;
}

TEST(LineDocumentTest, SurvivesDeepNesting) {
  EXPECT_NE(document_of_line(std::string(1 << 20, '[')).refusal, "");
}

}  // namespace
}  // namespace chiliad::text
