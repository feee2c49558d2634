#include "chiliad/supervise/launch/stall.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace chiliad::supervise {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Position at(int64_t step, int instruction, const char* operation, int layer = -1) {
  Position position;
  position.step = step;
  position.phase = "communication";
  position.slot = -1;
  position.instruction = instruction;
  position.changed = seconds(5);
  position.operation = operation;
  position.layer = layer;
  position.program = 0xab12;
  return position;
}

Position between_steps(int64_t step, const char* phase) {
  Position position = at(step, -1, "");
  position.phase = phase;
  position.program = 0;
  return position;
}

TEST(StallTest, NamesTheRankThatIsBehind) {
  auto behind = at(7, 31, "backward", 5);
  behind.slot = 0;
  const auto wait = at(7, 36, "await_reduce", 6);
  const auto stall = explain_stall({wait, wait, behind, wait});
  EXPECT_THAT(stall.odd, ElementsAre(2));
  EXPECT_EQ(
      stall.text,
      "rank 2 is behind: rank 2 is at step 7, backward of layer 5, slot 0 (instruction 31 of program "
      "000000000000ab12). Waiting: ranks 0, 1, 3 are at step 7, await reduce of layer 6 (instruction 36 "
      "of program 000000000000ab12)");
}

TEST(StallTest, AnEarlierStepIsBehindALaterInstruction) {
  EXPECT_THAT(explain_stall({at(7, 3, "forward"), at(6, 40, "await_gather")}).odd, ElementsAre(1));
}

TEST(StallTest, WhoWaitsForDataIsBehind) {
  const auto stall = explain_stall({at(7, 0, "load"), between_steps(7, "data_wait")});
  EXPECT_THAT(stall.odd, ElementsAre(1));
  EXPECT_THAT(stall.text, HasSubstr("rank 1 is at step 7, data wait"));
}

TEST(StallTest, ACheckpointComesBeforeTheDataOfTheStep) {
  EXPECT_THAT(explain_stall({between_steps(4, "data_wait"), between_steps(4, "checkpoint")}).odd,
              ElementsAre(1));
}

TEST(StallTest, WhoNeverStartedIsBehind) {
  Position never;
  never.instruction = 0;
  const auto stall = explain_stall({between_steps(0, "start"), never});
  EXPECT_THAT(stall.odd, ElementsAre(1));
  EXPECT_THAT(stall.text, HasSubstr("rank 1 is at the start"));
}

TEST(StallTest, WhoFinishedIsNotBehind) {
  EXPECT_THAT(explain_stall({between_steps(3, "finished"), at(9, 0, "load")}).odd, ElementsAre(1));
}

TEST(StallTest, AStoppedProcessIsOddWhereverItIs) {
  auto stopped = at(7, 36, "await_reduce");
  stopped.stopped = true;
  const auto stall = explain_stall({at(7, 31, "backward"), stopped, at(7, 36, "await_reduce")});
  EXPECT_THAT(stall.odd, ElementsAre(1));
  EXPECT_THAT(stall.text, HasSubstr("rank 1 is stopped by a signal"));
}

TEST(StallTest, TheMinorityRunsAnotherProgram) {
  auto other = at(7, 50, "agree");
  other.program = 0xcd34;
  const auto wait = at(7, 36, "await_reduce");
  const auto stall = explain_stall({wait, other, wait});
  EXPECT_THAT(stall.odd, ElementsAre(1));
  EXPECT_THAT(stall.text, HasSubstr("rank 1 is running another program than the others"));
}

TEST(StallTest, OfTwoProgramsNobodyKnowsTheRightOne) {
  auto other = at(7, 50, "agree");
  other.program = 0xcd34;
  EXPECT_THAT(explain_stall({at(7, 36, "await_reduce"), other}).odd, ElementsAre(0, 1));
}

TEST(StallTest, StepsMayHaveDifferentPrograms) {
  auto next = at(8, 2, "forward");
  next.program = 0xcd34;
  EXPECT_THAT(compare_programs({at(7, 60, "await_gather"), next}).odd, IsEmpty());
}

TEST(StallTest, TheAccusedDecidesAmongThoseBehind) {
  const auto behind = at(7, 31, "await_unshard");
  const auto wait = at(7, 36, "agree");
  EXPECT_THAT(explain_stall({behind, behind, wait, wait}, {1}).odd, ElementsAre(1));
}

TEST(StallTest, TheAccusedDecidesWhereAllAreAtTheSamePlace) {
  const auto wait = at(7, 36, "agree");
  const auto stall = explain_stall({wait, wait, wait}, {2});
  EXPECT_THAT(stall.odd, ElementsAre(2));
  EXPECT_THAT(stall.text, HasSubstr("rank 2 is waited for by the others"));
}

TEST(StallTest, WhoIsAheadIsNotAccused) {
  const auto wait = at(7, 36, "agree");
  EXPECT_THAT(explain_stall({at(7, 31, "backward"), wait, wait}, {1}).odd, ElementsAre(0));
}

TEST(StallTest, NobodyIsOddWhereAllAreAlike) {
  const auto wait = at(7, 36, "agree");
  const auto stall = explain_stall({wait, wait});
  EXPECT_THAT(stall.odd, IsEmpty());
  EXPECT_THAT(stall.text, HasSubstr("nobody is behind: ranks 0, 1 are at step 7, agree"));
}

TEST(StallTest, AThousandRanksAreAShortText) {
  std::vector<Position> positions(1000, at(7, 36, "agree"));
  positions[512] = at(7, 31, "backward", 5);
  const auto stall = explain_stall(positions);
  EXPECT_THAT(stall.odd, ElementsAre(512));
  EXPECT_THAT(stall.text, HasSubstr("ranks 0, 1, 2, 3, 4, 5, 6, 7 and 991 more are at"));
}

}  // namespace
}  // namespace chiliad::supervise
