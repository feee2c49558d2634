#include "chiliad/schedule/executor.h"

namespace chiliad::schedule {
namespace {

void dispatch(const Instruction& i, Stage& stage) {
  switch (i.op) {
    case Op::kLoad:
      return stage.load(i.slot);
    case Op::kForward:
      return stage.forward(i.layer, i.slot);
    case Op::kLoss:
      return stage.loss(i.slot);
    case Op::kBackward:
      return stage.backward(i.layer, i.slot);
    case Op::kReduce:
      return stage.reduce(i.layer);
    case Op::kAwaitReduce:
      return stage.await_reduce(i.layer);
    case Op::kAgree:
      return stage.agree();
    case Op::kOptimize:
      return stage.optimize(i.layer);
    case Op::kGather:
      return stage.gather(i.layer);
    case Op::kAwaitGather:
      return stage.await_gather(i.layer);
    case Op::kUnshard:
      return stage.unshard(i.layer);
    case Op::kAwaitUnshard:
      return stage.await_unshard(i.layer);
    case Op::kReshard:
      return stage.reshard(i.layer);
    case Op::kReduceReplicas:
      return stage.reduce_replicas(i.layer);
    case Op::kAwaitReduceReplicas:
      return stage.await_reduce_replicas(i.layer);
    case Op::kSumReplicated:
      return stage.sum_replicated();
  }
}

}  // namespace

void execute(const Program& program, Stage& stage, Watcher& watcher) {
  int32_t index = 0;
  for (const auto& instruction : program.instructions) {
    watcher.before(index, instruction);
    dispatch(instruction, stage);
    watcher.after(index, instruction);
    ++index;
  }
}

}  // namespace chiliad::schedule
