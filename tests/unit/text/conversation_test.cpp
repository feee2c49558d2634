#include "chiliad/text/conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/text/stored_text.h"

namespace chiliad::text {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string with_turns(const std::string& turns, const std::string& fields = "") {
  return "{" + fields + "\"conversations\": [" + turns + "]}";
}
constexpr const char* kQuestion = R"({"from": "human", "value": "<image>\nWhat is it?"})";
constexpr const char* kAnswer = R"({"from": "gpt", "value": "A cat."})";
std::string question_and_answer() {
  return std::string(kQuestion) + ", " + kAnswer;
}
std::string refusal(const std::string& record) {
  return conversation_of_record(record).refusal;
}

TEST(ConversationTest, KeepsTurnsToTheByte) {
  const auto made = conversation_of_record(with_turns(question_and_answer(), R"("image": "a.jpg", )"));
  ASSERT_EQ(made.refusal, "");
  ASSERT_EQ(made.turns.size(), 2U);
  EXPECT_EQ(made.turns[0].text, "<image>\nWhat is it?");
  EXPECT_EQ(made.turns[1].role, Role::kAssistant);
  EXPECT_THAT(made.images, ElementsAre("a.jpg"));
  EXPECT_EQ(made.num_marks, 1);
}

TEST(ConversationTest, TakesTheOtherNames) {
  const auto made = conversation_of_record(
      R"({"images": ["a", "b"], "messages": [{"role": "system", "content": "s"},
          {"role": "user", "content": "<image><image>?"}, {"role": "assistant", "content": "!"}]})");
  ASSERT_EQ(made.refusal, "");
  EXPECT_EQ(made.turns[0].role, Role::kSystem);
  EXPECT_THAT(made.images, ElementsAre("a", "b"));
}

TEST(ConversationTest, LeavesOutAFirstAnswer) {
  const auto made = conversation_of_record(
      with_turns(std::string(kAnswer) + R"(, {"from": "human", "value": "?"}, )" + kAnswer));
  ASSERT_EQ(made.refusal, "");
  EXPECT_EQ(made.turns.size(), 2U);
}

TEST(ConversationTest, TakesPicturesWithoutMarks) {
  const std::string turns = R"({"from": "human", "value": "?"}, )" + std::string(kAnswer);
  EXPECT_EQ(refusal(with_turns(turns, R"("image": ["a", "b"], )")), "");
}

TEST(ConversationTest, RefusesMoreMarksThanPictures) {
  EXPECT_THAT(refusal(with_turns(question_and_answer())), HasSubstr("1 marks <image> and 0 pictures"));
}

TEST(ConversationTest, RefusesTurnsOutOfOrder) {
  EXPECT_THAT(refusal(with_turns(std::string(kAnswer) + ", " + kAnswer)), HasSubstr("out of order"));
}

TEST(ConversationTest, RefusesUnknownRoles) {
  EXPECT_THAT(refusal(with_turns(R"({"from": "bot", "value": "x"})")), HasSubstr("got 'bot'"));
}

TEST(ConversationTest, RefusesValuesThatAreNoText) {
  EXPECT_THAT(refusal(with_turns(R"({"from": "human", "value": 3})")),
              HasSubstr("turn 1: value: expected a string"));
}

TEST(ConversationTest, RefusesWhatHasNoAnswer) {
  EXPECT_THAT(refusal(with_turns("")), HasSubstr("no answer"));
  EXPECT_THAT(refusal(with_turns(R"({"from": "human", "value": "?"}, {"from": "gpt", "value": ""})")),
              HasSubstr("no answer"));
}

TEST(ConversationTest, RefusesVideos) {
  EXPECT_THAT(refusal(with_turns(kAnswer, R"("video": "a.mp4", )")), HasSubstr("video"));
}

TEST(ConversationTest, RefusesDeepNesting) {
  EXPECT_THAT(refusal("{\"a\": " + std::string(100'000, '[') + std::string(100'000, ']') + "}"),
              HasSubstr("deeper"));
}

TEST(ConversationTest, RefusesEveryCut) {
  const std::string record = with_turns(question_and_answer(), R"("image": "a.jpg", )");
  for (size_t i = 0; i < record.size(); ++i) EXPECT_NE(refusal(record.substr(0, i)), "") << i;
}

TEST(StoredTextTest, UnescapesJson) {
  EXPECT_EQ(text_of_json_string(R"(" a \"cat\" \u00e9\n")").text, "a \"cat\" \xC3\xA9");
}

TEST(StoredTextTest, RefusesHalfASurrogatePair) {
  EXPECT_THAT(text_of_json_string(R"("\ud83d")").refusal, HasSubstr("expected a JSON string"));
}

TEST(StoredTextTest, UnescapesQuotedFields) {
  EXPECT_EQ(text_of_csv_field("\"a \"\"cat\"\", two\"").text, "a \"cat\", two");
  EXPECT_EQ(text_of_csv_field(" a cat ").text, "a cat");
  EXPECT_EQ(text_of_csv_field("\"\"").text, "");
}

TEST(StoredTextTest, RefusesBrokenQuotes) {
  EXPECT_NE(text_of_csv_field("\"").refusal, "");
  EXPECT_NE(text_of_csv_field("\"a\" b").refusal, "");
  EXPECT_NE(text_of_csv_field("\"a\"b\"").refusal, "");
}

}  // namespace
}  // namespace chiliad::text
