// Conversations as training sequences, in bytes, where a token is a character.
#include "chiliad/text/conversation_encoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"

namespace chiliad::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::shared_ptr<const ConversationEncoder> encoder(const std::string& chat_template,
                                                   int64_t max_ids = 10'000) {
  return ConversationEncoder::open(
      {.tokenizer = "", .chat_template = chat_template, .max_ids = max_ids, .pictures = {}});
}

/// "human: X", "gpt: Y" turn by turn.
std::string record(const std::vector<std::string>& turns, const std::string& fields = "") {
  std::string text = "{" + fields + "\"conversations\": [";
  for (size_t i = 0; i < turns.size(); ++i)
    text += std::string(i > 0 ? ", " : "") + "{\"from\": \"" + (i % 2 == 0 ? "human" : "gpt") +
            "\", \"value\": \"" + turns[i] + "\"}";
  return text + "]}";
}

/// The ids as text, [ ] around what is supervised, # for a position of a picture.
std::string shown(const EncodedConversation& made) {
  std::string text;
  bool inside = false;
  for (size_t i = 0; i < made.ids.size(); ++i) {
    if ((made.supervised[i] != 0) != inside) text += inside ? "]" : "[";
    inside = made.supervised[i] != 0;
    text += made.ids[i] == kImagePosition ? '#' : static_cast<char>(made.ids[i] - 2);
  }
  return text + (inside ? "]" : "");
}

TEST(ConversationEncoderTest, VicunaSupervisesAnswersAndTheirEnd) {
  const auto made = encoder("vicuna")->encode(record({"Hi", "Yes", "So?", "No"}), {});
  EXPECT_EQ(made.refusal, "");
  EXPECT_THAT(shown(made),
              HasSubstr("questions. USER: Hi ASSISTANT:[ Yes</s>]USER: So? ASSISTANT:[ No</s>]"));
}

TEST(ConversationEncoderTest, ChatmlHasItsFrames) {
  EXPECT_EQ(shown(encoder("chatml")->encode(record({"Hi", "Yes"}), {})),
            "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
            "<|im_start|>assistant\n[Yes<|im_end|>]\n");
}

TEST(ConversationEncoderTest, ASystemTurnTakesThePlaceOfTheUsualOne) {
  const std::string text =
      R"({"conversations": [{"from": "system", "value": "Be short."}, {"from": "human", "value": "Hi"},
          {"from": "gpt", "value": "Yes"}]})";
  EXPECT_EQ(
      shown(encoder("llama3")->encode(text, {})),
      "<|start_header_id|>system<|end_header_id|>\n\nBe short.<|eot_id|><|start_header_id|>user"
      "<|end_header_id|>\n\nHi<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n[Yes<|eot_id|>]");
}

TEST(ConversationEncoderTest, PicturesStandWhereTheirMarksAre) {
  const std::vector<int64_t> positions{3, 2};
  const auto made = encoder("chatml")->encode(
      record({"a <image> b <image>", "Yes"}, R"("image": ["x.png", "y.png"], )"), positions);
  EXPECT_THAT(shown(made), HasSubstr("user\na ### b ##<|im_end|>"));
  ASSERT_EQ(made.pictures.size(), 2U);
  EXPECT_EQ(made.pictures[0].count, 3);
  EXPECT_EQ(made.pictures[1].first, made.pictures[0].first + 3 + 3);
}

TEST(ConversationEncoderTest, PicturesWithoutMarksComeFirst) {
  const std::vector<int64_t> positions{1, 1};
  EXPECT_THAT(
      shown(encoder("chatml")->encode(record({"Hi", "Yes"}, R"("image": ["x.png", "x.png"], )"), positions)),
      HasSubstr("user\n#\n#\nHi"));
}

TEST(ConversationEncoderTest, PlainIsThePictureAndWhatIsSaidOfIt) {
  const std::vector<int64_t> positions{4};
  EXPECT_EQ(shown(encoder("plain")->encode(record({"<image>\\nDescribe.", "A cat."}, R"("image": "x.png", )"),
                                           positions)),
            "####[A cat.\n]");
}

TEST(ConversationEncoderTest, ACutNeverLiesInAPicture) {
  const std::vector<int64_t> positions{4, 4};
  const std::string text = record({"a<image>b<image>c", "Yes"}, R"("image": ["x.png", "y.png"], )");
  const int64_t second = encoder("chatml")->encode(text, positions).pictures[1].first;
  for (int64_t max = second; max <= second + 4; ++max) {  // a picture at the very end has no target
    const auto made = encoder("chatml", max)->encode(text, positions);
    EXPECT_EQ(made.ids.size(), static_cast<size_t>(second)) << max;
    EXPECT_EQ(made.pictures.size(), 1U);
    EXPECT_EQ(made.supervised.size(), made.ids.size());
  }
  EXPECT_EQ(encoder("chatml", second + 5)->encode(text, positions).pictures.size(), 2U);
}

TEST(ConversationEncoderTest, RefusesWhatTheRecordDoesNotSay) {
  const std::vector<int64_t> one{4};
  EXPECT_EQ(encoder("plain")->encode(record({"Hi", "Yes"}), one).refusal, "has 1 pictures, expected 0");
  EXPECT_THAT(encoder("plain")->encode("{}", {}).ids, IsEmpty());
  EXPECT_THAT(encoder("plain")->encode(record(std::vector<std::string>(1026, "x")), {}).refusal,
              HasSubstr("has 1026 turns"));
}

TEST(ConversationEncoderTest, TheDigestHoldsEveryOption) {
  const auto digest = [](const ConversationEncoder::Options& options) {
    return ConversationEncoder::open(options)->digest();
  };
  const ConversationEncoder::Options usual{"", "vicuna", 100, {}};
  EXPECT_NE(digest(usual), digest({"", "plain", 100, {}}));
  EXPECT_NE(digest(usual), digest({"", "vicuna", 101, {}}));
  EXPECT_NE(digest(usual), digest({"", "vicuna", 100, {1, 2}}));
  EXPECT_THROW(static_cast<void>(digest({"", "alpaca", 100, {}})), InvalidInput);
}

}  // namespace
}  // namespace chiliad::text
