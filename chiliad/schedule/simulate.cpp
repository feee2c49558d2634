#include "chiliad/schedule/simulate.h"

#include <algorithm>

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
  std::vector<double> reduced(static_cast<size_t>(program.num_layers), 0.0);
  std::vector<double> gathered(static_cast<size_t>(program.num_layers), 0.0);
  for (const auto& i : program.instructions) {
    const auto layer = static_cast<size_t>(std::max(i.layer, 0));
    switch (i.op) {
      case Op::kLoad:
      case Op::kLoss:
        break;
      case Op::kForward:
        machine.compute(at(costs.forward.at(layer), i.slot));
        break;
      case Op::kBackward:
        machine.compute(at(costs.backward.at(layer), i.slot));
        break;
      case Op::kReduce:
        reduced[layer] = machine.transfer(at(costs.reduce, i.layer));
        break;
      case Op::kAwaitReduce:
        machine.await(reduced[layer]);
        break;
      case Op::kAgree:
        machine.await(machine.transfer(costs.agree));
        break;
      case Op::kOptimize:
        machine.compute(at(costs.optimize, i.layer));
        break;
      case Op::kGather:
        gathered[layer] = machine.transfer(at(costs.gather, i.layer));
        break;
      case Op::kAwaitGather:
        machine.await(gathered[layer]);
        break;
    }
  }
  machine.total.seconds = machine.now;
  return machine.total;
}

}  // namespace chiliad::schedule
