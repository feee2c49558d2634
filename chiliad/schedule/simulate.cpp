#include "chiliad/schedule/simulate.h"

#include <algorithm>
#include <map>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::schedule {
namespace {

double at(const std::vector<double>& values, int32_t index) {
  return values.at(static_cast<size_t>(index));
}

struct Machine {
  double now = 0.0;        // of the compute
  double wire_free = 0.0;  // when the wire is idle again
  Prediction total;

  void compute(double seconds) {
    now += seconds;
    total.compute += seconds;
  }
  double transfer(double seconds) {
    wire_free = std::max(wire_free, now) + seconds;
    total.communication += seconds;
    return wire_free;
  }
  void await(double ready) {
    if (ready <= now) return;
    total.exposed += ready - now;
    now = ready;
  }
};

}  // namespace

Prediction simulate(const Program& program, const Costs& costs) {
  Machine machine;
  // When the last transfer of a kind that was started for a layer has arrived.
  std::map<std::pair<Op, int32_t>, double> ready;
  const auto start = [&](const Instruction& i, const std::vector<double>& seconds) {
    ready[{i.op, i.layer}] = machine.transfer(at(seconds, i.layer));
  };
  for (const auto& i : program.instructions) {
    const auto layer = static_cast<size_t>(std::max(i.layer, 0));
    switch (i.op) {
      case Op::kLoad:
      case Op::kLoss:
      case Op::kReshard:
        break;
      case Op::kForward:
        machine.compute(at(costs.forward.at(layer), i.slot));
        break;
      case Op::kBackward:
        machine.compute(at(costs.backward.at(layer), i.slot));
        break;
      case Op::kUnshard:
        start(i, costs.unshard);
        break;
      case Op::kReduce:
        start(i, costs.reduce);
        break;
      case Op::kReduceReplicas:
        start(i, costs.reduce_replicas);
        break;
      case Op::kGather:
        start(i, costs.gather);
        break;
      case Op::kAwaitUnshard:
        machine.await(ready[{Op::kUnshard, i.layer}]);
        break;
      case Op::kAwaitReduce:
        machine.await(ready[{Op::kReduce, i.layer}]);
        break;
      case Op::kAwaitReduceReplicas:
        machine.await(ready[{Op::kReduceReplicas, i.layer}]);
        break;
      case Op::kAwaitGather:
        machine.await(ready[{Op::kGather, i.layer}]);
        break;
      case Op::kSumReplicated:
        machine.await(machine.transfer(costs.sum_replicated));
        break;
      case Op::kAgree:
        machine.await(machine.transfer(costs.agree));
        break;
      case Op::kOptimize:
        machine.compute(at(costs.optimize, i.layer));
        break;
    }
  }
  machine.total.seconds = machine.now;
  return machine.total;
}

}  // namespace chiliad::schedule
