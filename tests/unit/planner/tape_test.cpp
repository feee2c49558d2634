#include "chiliad/planner/detail/tape.h"

#include <gtest/gtest.h>

namespace chiliad::planner::detail {
namespace {

TEST(TapeTest, ForwardFreesWhatNobodyKeeps) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 100});
  const Value b = tape.add({.inputs = {a}, .result = 20});
  tape.output(tape.add({.inputs = {b}, .result = 5}));
  const auto memory = tape.memory();
  EXPECT_EQ(memory.none.kept, 0);
  EXPECT_EQ(memory.none.forward, 120);
}

TEST(TapeTest, SavedValuesStayUntilTheirBackward) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 100});
  tape.output(tape.add({.inputs = {a}, .result = 20, .saved = {a}}));
  const auto memory = tape.memory();
  EXPECT_EQ(memory.none.kept, 100);
  EXPECT_EQ(memory.none.backward, 100);  // the gradient of a; then a goes, and that of x comes
}

TEST(TapeTest, ViewsKeepTheMemoryOfTheirOwner) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 100});
  const Value part = tape.add({.inputs = {a}, .gradient = 30});
  tape.output(tape.add({.inputs = {part}, .result = 20, .saved = {part}}));
  EXPECT_EQ(tape.memory().none.kept, 100);
}

TEST(TapeTest, AValueMadeAgainIsNotKeptButThereInBackward) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 100, .saved = {x}});
  tape.make_again(a, 7);
  tape.output(tape.add({.inputs = {a}, .result = 20, .saved = {a}}));
  const auto memory = tape.memory();
  EXPECT_EQ(memory.none.kept, 100);
  EXPECT_EQ(memory.selective.kept, 0);
  EXPECT_EQ(memory.selective.backward, 200);
}

TEST(TapeTest, ResidualsShareTheirGradient) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 10});
  tape.output(tape.add({.inputs = {x, a}, .result = 10, .passes_gradient = true}));
  // The branch's gradient, and its sum with the caller's, which must not change.
  EXPECT_EQ(tape.memory().none.backward, 20);
}

TEST(TapeTest, LayersMakeTheirOutputsAgain) {
  Tape tape;
  const Value x = tape.input(10);
  const Value a = tape.add({.inputs = {x}, .result = 100});
  tape.output(tape.add({.inputs = {a}, .result = 20, .saved = {a}}));
  const auto memory = tape.memory();
  EXPECT_EQ(memory.layers.kept, 0);
  EXPECT_EQ(memory.layers.forward, 120);
  EXPECT_EQ(memory.layers.backward, 220);
}

TEST(TapeTest, FrozenOperatorsKeepNothing) {
  Tape tape;
  const Value x = tape.input(10, false);
  const Value a = tape.add({.inputs = {x}, .result = 100});
  tape.output(tape.add({.inputs = {a}, .result = 20, .saved = {a}}));
  EXPECT_EQ(tape.memory().none.kept, 0);
}

}  // namespace
}  // namespace chiliad::planner::detail
