// Post-processors: which ids stand around a text.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiliad/base/error.h"
#include "chiliad/base/json_text.h"
#include "tests/unit/text/tokenizer_json.h"

namespace chiliad::text {
namespace {

using Ids = std::vector<int32_t>;
using nlohmann::json;

Ids framed(const char* processor) {
  json changed = test::small_tokenizer();
  changed["post_processor"] = parse_json<json>(processor);
  return test::open_json(changed)->encode_with_special("b");
}

TEST(FrameTest, BertProcessingPutsClsBeforeAndSepBehind) {
  EXPECT_EQ(framed(R"({"type": "BertProcessing", "sep": ["<end>", 7], "cls": ["a", 0]})"), (Ids{0, 1, 7}));
}

TEST(FrameTest, RobertaProcessingIsTheSame) {
  EXPECT_EQ(framed(R"({"type": "RobertaProcessing", "sep": ["<end>", 7], "cls": ["a", 0]})"), (Ids{0, 1, 7}));
}

TEST(FrameTest, TemplatesMayHoldSeveralTokens) {
  EXPECT_EQ(framed(R"({"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "X"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "X"}}],
      "special_tokens": {"X": {"id": "X", "ids": [2, 7], "tokens": ["c", "<end>"]}}})"),
            (Ids{2, 7, 1, 2, 7}));
}

TEST(FrameTest, StepsWithoutFrameDoNotCount) {
  EXPECT_EQ(framed(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"},
      {"type": "BertProcessing", "sep": ["<end>", 7], "cls": ["a", 0]}]})"),
            (Ids{0, 1, 7}));
}

TEST(FrameTest, TwoFramesAreRefused) {
  EXPECT_THROW((void)framed(R"({"type": "Sequence", "processors": [
      {"type": "BertProcessing", "sep": ["<end>", 7], "cls": ["a", 0]},
      {"type": "BertProcessing", "sep": ["<end>", 7], "cls": ["a", 0]}]})"),
               InvalidInput);
}

TEST(FrameTest, CutsTextsInsideATemplate) {
  json changed = test::small_tokenizer();
  EXPECT_EQ(fit_tokens(*test::open_json(changed), "b c b c b", 3), (Ids{1, 6, 7}));
}

}  // namespace
}  // namespace chiliad::text
