#include "chiliad/schedule/program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/schedule/executor.h"
#include "chiliad/schedule/simulate.h"

namespace chiliad::schedule {
namespace {

ProgramOptions options(int32_t layers, int32_t slots) {
  return {.num_layers = layers, .num_slots = slots};
}
ProgramOptions sharded(int32_t layers, int32_t slots, bool keep) {
  return {.num_layers = layers, .num_slots = slots, .sharded = true, .keep = keep};
}
Program made(const ProgramOptions& options) {
  return make_program(options);
}
int count(const Program& program, Op op) {
  const auto& list = program.instructions;
  return static_cast<int>(std::count_if(list.begin(), list.end(), [&](const auto& i) { return i.op == op; }));
}

TEST(ProgramTest, GeneratedProgramsAreProven) {
  for (const int layers : {1, 2, 7}) {
    for (const int slots : {1, 2, 5}) {
      for (const bool tensor_parallel : {false, true}) {
        for (ProgramOptions o :
             {options(layers, slots), sharded(layers, slots, false), sharded(layers, slots, true)}) {
          o.tensor_parallel = tensor_parallel;
          EXPECT_NO_THROW(check(made(o), o)) << layers << " layers, " << slots << " slots";
        }
      }
    }
  }
}

TEST(ProgramTest, ProgramsThatGatherFurtherAheadAreProven) {
  for (const int layers : {1, 2, 3, 7}) {
    for (const int ahead : {2, 3, 9}) {
      for (const int mask : {0, 1, 2, 3}) {  // of frozen layers
        for (const bool keep : {false, true}) {
          ProgramOptions o = sharded(layers, 2, keep);
          o.ahead = ahead;
          for (int layer = 0; layer < layers; ++layer) o.trained.push_back((mask >> layer & 1) == 0);
          EXPECT_NO_THROW(check(made(o), o)) << layers << " layers, " << ahead << " ahead, frozen " << mask;
        }
      }
    }
  }
}

// Memory: one more whole layer, and one more layer's gradients, for each layer ahead.
TEST(ProgramTest, SoManyLayersAreWholeOrReducedAtOnce) {
  for (const int ahead : {1, 2, 3}) {
    ProgramOptions o = sharded(9, 2, false);
    o.ahead = ahead;
    int whole = 0;
    int most_whole = 0;
    int gradients = 0;
    int most_gradients = 0;
    for (const auto& i : made(o).instructions) {
      whole += (i.op == Op::kUnshard ? 1 : 0) - (i.op == Op::kReshard ? 1 : 0);
      gradients += (i.op == Op::kBackward ? 1 : 0) - (i.op == Op::kAwaitReduce ? 1 : 0);
      most_whole = std::max(most_whole, whole);
      most_gradients = std::max(most_gradients, gradients);
    }
    EXPECT_EQ(most_whole, ahead + 1);
    EXPECT_EQ(most_gradients, ahead + 1);
  }
}

TEST(ProgramTest, AReductionStartsBeforeTheWaitForTheOneBefore) {
  const auto list = made(sharded(4, 1, false)).instructions;
  const auto place = [&](Op op, int32_t layer) {
    return std::find(list.begin(), list.end(), Instruction{op, layer, -1}) - list.begin();
  };
  EXPECT_LT(place(Op::kReduce, 2), place(Op::kAwaitReduce, 3));
  EXPECT_LT(place(Op::kAwaitReduce, 3), place(Op::kReduce, 1));
}

TEST(ProgramTest, ProgramsWithoutOverlapAreProven) {
  for (ProgramOptions o : {options(3, 2), sharded(3, 2, false), sharded(3, 2, true)}) {
    o.overlap = false;
    EXPECT_NO_THROW(check(made(o), o));
  }
}

TEST(ProgramTest, WithoutOverlapTheWireIsExposed) {
  ProgramOptions o = sharded(3, 1, false);
  Costs costs;
  costs.forward = costs.backward = {{5.0}, {5.0}, {5.0}};
  costs.unshard = costs.reduce = {1.0, 1.0, 1.0};
  costs.reduce_replicas = costs.optimize = costs.gather = {0.0, 0.0, 0.0};
  const auto overlapped = simulate(made(o), costs);
  o.overlap = false;
  const auto serial = simulate(made(o), costs);
  EXPECT_DOUBLE_EQ(serial.exposed, serial.communication);
  EXPECT_DOUBLE_EQ(serial.communication, overlapped.communication);
  EXPECT_DOUBLE_EQ(overlapped.exposed, 2.0);  // the first gather and the last reduction
}

TEST(ProgramTest, ProgramsWithFrozenLayersAreProven) {
  for (const int mask : {1, 2, 3, 4, 5, 6}) {  // of three layers, not all
    for (ProgramOptions o : {options(3, 2), sharded(3, 2, false), sharded(3, 2, true)}) {
      o.trained = {(mask & 1) == 0, (mask & 2) == 0, (mask & 4) == 0};
      EXPECT_NO_THROW(check(made(o), o)) << mask;
    }
  }
}

TEST(ProgramTest, LentParametersStayWholeUntilTheirBackward) {
  for (const bool trained : {true, false}) {
    ProgramOptions o = sharded(3, 2, false);
    o.lent = {true, false, false};
    o.trained = {trained, true, true};
    const Program program = made(o);
    EXPECT_NO_THROW(check(program, o));
    EXPECT_EQ(count(program, Op::kUnshard), 2 * (3 + 1));  // layer 1 twice a slot, the others once
  }
}

TEST(ProgramTest, FrozenLayersAtTheBottomHaveNoBackward) {
  ProgramOptions o = options(3, 1);
  o.trained = {false, true, false};
  const Program program = made(o);
  EXPECT_EQ(count(program, Op::kBackward), 2);
  EXPECT_EQ(count(program, Op::kReduceReplicas), 1);
  EXPECT_EQ(count(program, Op::kOptimize), 1);
}

TEST(ProgramTest, GathersAreOneLayerAhead) {
  const Program program = made(sharded(3, 1, false));
  const auto& list = program.instructions;
  const auto position = [&](Instruction wanted) {
    return std::find(list.begin(), list.end(), wanted) - list.begin();
  };
  EXPECT_LT(position({Op::kUnshard, 1, -1}), position({Op::kForward, 0, 0}));
  EXPECT_GT(position({Op::kUnshard, 2, -1}), position({Op::kForward, 0, 0}));
  EXPECT_EQ(count(program, Op::kUnshard), 3 + 2);  // the last layer stays whole for its backward
}

TEST(ProgramTest, KeptParametersAreGatheredOnce) {
  EXPECT_EQ(count(made(sharded(3, 4, true)), Op::kUnshard), 3);
  EXPECT_EQ(count(made(sharded(3, 4, true)), Op::kReduce), 3);
  EXPECT_EQ(count(made(sharded(3, 4, false)), Op::kReduce), 12);
}

TEST(ProgramTest, AtMostTwoLayersAreWholeAtOnce) {
  int whole = 0;
  for (const auto& i : made(sharded(6, 2, false)).instructions) {
    if (i.op == Op::kUnshard) ++whole;
    if (i.op == Op::kReshard) --whole;
    EXPECT_LE(whole, 2);
  }
}

TEST(ProgramTest, DigestDependsOnSlots) {
  EXPECT_EQ(made(options(3, 2)).digest(), made(options(3, 2)).digest());
  EXPECT_NE(made(options(3, 2)).digest(), made(options(3, 3)).digest());
}

TEST(ProgramTest, EveryMissingInstructionIsFound) {
  for (ProgramOptions o : {options(2, 2), sharded(2, 2, false), sharded(2, 2, true)}) {
    o.tensor_parallel = true;
    const Program program = made(o);
    for (size_t i = 0; i < program.instructions.size(); ++i) {
      Program less = program;
      less.instructions.erase(less.instructions.begin() + static_cast<int64_t>(i));
      EXPECT_THROW(check(less, o), InternalError) << op_name(program.instructions[i].op) << " at " << i;
    }
  }
}

TEST(ProgramTest, EverySwapOfNeighboursThatMattersIsFound) {
  ProgramOptions o = options(1, 1);
  o.tensor_parallel = true;
  const Program program = made(o);
  for (size_t i = 0; i + 1 < program.instructions.size(); ++i) {
    Program swapped = program;
    std::swap(swapped.instructions[i], swapped.instructions[i + 1]);
    EXPECT_THROW(check(swapped, o), InternalError)
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
  void unshard(int32_t layer) override { note(Op::kUnshard, layer, -1); }
  void await_unshard(int32_t layer) override { note(Op::kAwaitUnshard, layer, -1); }
  void reshard(int32_t layer) override { note(Op::kReshard, layer, -1); }
  void reduce_replicas(int32_t layer) override { note(Op::kReduceReplicas, layer, -1); }
  void await_reduce_replicas(int32_t layer) override { note(Op::kAwaitReduceReplicas, layer, -1); }
  void sum_replicated() override { note(Op::kSumReplicated, -1, -1); }
  void before(int32_t, const Instruction&) override { ++watched; }
  void after(int32_t, const Instruction&) override { ++watched; }

  std::vector<Instruction> done;
  int watched = 0;

 private:
  void note(Op op, int32_t layer, int32_t slot) { done.push_back({op, layer, slot}); }
};

TEST(ExecutorTest, RunsEveryInstructionInOrder) {
  ProgramOptions o = sharded(3, 2, false);
  o.tensor_parallel = true;
  const Program program = made(o);
  Recorder recorder;
  execute(program, recorder, recorder);
  EXPECT_EQ(recorder.done, program.instructions);
  EXPECT_EQ(recorder.watched, static_cast<int>(2 * program.instructions.size()));
}

TEST(SimulateTest, HidesReductionsBehindBackward) {
  const Program program = made(options(2, 1));
  Costs costs;
  costs.forward = {{1.0}, {1.0}};
  costs.backward = {{2.0}, {2.0}};
  costs.reduce_replicas = {1.0, 1.5};
  costs.optimize = {0.5, 0.5};
  costs.gather = {0.0, 0.0};
  const Prediction prediction = simulate(program, costs);
  // Layer 1 is reduced behind layer 0's backward; layer 0's reduction (1.0) is exposed.
  EXPECT_DOUBLE_EQ(prediction.exposed, 1.0);
  EXPECT_DOUBLE_EQ(prediction.seconds, 2.0 + 4.0 + 1.0 + 1.0);
}

TEST(SimulateTest, RanksWaitForTheSlowest) {
  const Program program = made(sharded(2, 1, true));
  Costs fast;
  fast.forward = fast.backward = {{1.0}, {1.0}};
  fast.unshard = fast.reduce = fast.reduce_replicas = fast.gather = {0.0, 0.0};
  fast.optimize = {0.25, 0.25};
  Costs slow = fast;
  slow.forward = {{1.0}, {3.0}};
  slow.optimize = {0.5, 0.5};
  const std::vector<Costs> ranks{fast, slow};
  const Prediction both = simulate(program, ranks);
  EXPECT_DOUBLE_EQ(both.seconds, 7.0);
  EXPECT_DOUBLE_EQ(both.exposed, 0.0);  // of the slow one
  EXPECT_DOUBLE_EQ(simulate(program, fast).seconds, 4.5);
}

TEST(SimulateTest, HidesGathersBehindTheLayerBefore) {
  const Program program = made(sharded(3, 1, true));
  Costs costs;
  costs.forward = {{1.0}, {1.0}, {1.0}};
  costs.backward = {{0.0}, {0.0}, {0.0}};
  costs.unshard = {0.5, 0.9, 1.1};
  costs.reduce = costs.reduce_replicas = costs.optimize = costs.gather = {0.0, 0.0, 0.0};
  // The first gather is exposed. The second starts behind it and has 1 s of compute to hide; the third has
  // too.
  EXPECT_NEAR(simulate(program, costs).exposed, 0.5 + 0.0 + 0.1, 1e-12);
}

}  // namespace
}  // namespace chiliad::schedule
