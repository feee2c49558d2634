#include "chiliad/schedule/program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/schedule/executor.h"
#include "chiliad/schedule/simulate.h"

namespace chiliad::schedule {
namespace {

Program without(Program program, Op op) {
  auto& list = program.instructions;
  list.erase(std::find_if(list.begin(), list.end(), [&](const Instruction& i) { return i.op == op; }));
  return program;
}

TEST(ProgramTest, GeneratedProgramsAreProven) {
  for (const int layers : {1, 2, 7}) {
    for (const int slots : {1, 2, 5}) EXPECT_NO_THROW(check(make_data_parallel_program(layers, slots)));
  }
}

TEST(ProgramTest, DigestDependsOnSlots) {
  EXPECT_EQ(make_data_parallel_program(3, 2).digest(), make_data_parallel_program(3, 2).digest());
  EXPECT_NE(make_data_parallel_program(3, 2).digest(), make_data_parallel_program(3, 3).digest());
}

TEST(ProgramTest, EveryMissingInstructionIsFound) {
  const Program program = make_data_parallel_program(2, 2);
  for (const Op op : {Op::kLoad, Op::kForward, Op::kLoss, Op::kBackward, Op::kReduce, Op::kAwaitReduce,
                      Op::kAgree, Op::kOptimize, Op::kGather, Op::kAwaitGather}) {
    EXPECT_THROW(check(without(program, op)), InternalError) << op_name(op);
  }
}

TEST(ProgramTest, EverySwapOfNeighboursThatMattersIsFound) {
  const Program program = make_data_parallel_program(1, 1);
  for (size_t i = 0; i + 1 < program.instructions.size(); ++i) {
    Program swapped = program;
    std::swap(swapped.instructions[i], swapped.instructions[i + 1]);
    EXPECT_THROW(check(swapped), InternalError)
        << "at " << i;  // one layer, one slot: a chain, every order matters
  }
}

class Recorder final : public Stage, public Watcher {
 public:
  void load(int32_t slot) override { note(Op::kLoad, -1, slot); }
  void forward(int32_t layer, int32_t slot) override { note(Op::kForward, layer, slot); }
  void loss(int32_t slot) override { note(Op::kLoss, -1, slot); }
  void backward(int32_t layer, int32_t slot) override { note(Op::kBackward, layer, slot); }
  void reduce(int32_t layer) override { note(Op::kReduce, layer, -1); }
  void await_reduce(int32_t layer) override { note(Op::kAwaitReduce, layer, -1); }
  void agree() override { note(Op::kAgree, -1, -1); }
  void optimize(int32_t layer) override { note(Op::kOptimize, layer, -1); }
  void gather(int32_t layer) override { note(Op::kGather, layer, -1); }
  void await_gather(int32_t layer) override { note(Op::kAwaitGather, layer, -1); }
  void before(int32_t, const Instruction&) override { ++watched; }
  void after(int32_t, const Instruction&) override { ++watched; }

  std::vector<Instruction> done;
  int watched = 0;

 private:
  void note(Op op, int32_t layer, int32_t slot) { done.push_back({op, layer, slot}); }
};

TEST(ExecutorTest, RunsEveryInstructionInOrder) {
  const Program program = make_data_parallel_program(3, 2);
  Recorder recorder;
  execute(program, recorder, recorder);
  EXPECT_EQ(recorder.done, program.instructions);
  EXPECT_EQ(recorder.watched, static_cast<int>(2 * program.instructions.size()));
}

TEST(SimulateTest, HidesReductionsBehindBackward) {
  const Program program = make_data_parallel_program(2, 1);
  Costs costs;
  costs.forward = {{1.0}, {1.0}};
  costs.backward = {{2.0}, {2.0}};
  costs.reduce = {1.0, 1.5};
  costs.optimize = {0.5, 0.5};
  costs.gather = {0.0, 0.0};
  const Prediction prediction = simulate(program, costs);
  // Layer 1 is reduced behind layer 0's backward; layer 0's reduction (1.0) is exposed.
  EXPECT_DOUBLE_EQ(prediction.exposed, 1.0);
  EXPECT_DOUBLE_EQ(prediction.seconds, 2.0 + 4.0 + 1.0 + 1.0);
}

}  // namespace
}  // namespace chiliad::schedule
