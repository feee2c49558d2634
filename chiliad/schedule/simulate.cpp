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

/// Seconds of an instruction on one rank: of its computation, or of its transfer.
double seconds_of(const Instruction& i, const Costs& costs) {
  switch (i.op) {
    case Op::kForward:
      return at(costs.forward.at(static_cast<size_t>(i.layer)), i.slot);
    case Op::kBackward:
      return at(costs.backward.at(static_cast<size_t>(i.layer)), i.slot);
    case Op::kOptimize:
      return at(costs.optimize, i.layer);
    case Op::kUnshard:
      return at(costs.unshard, i.layer);
    case Op::kReduce:
      return at(costs.reduce, i.layer);
    case Op::kReduceReplicas:
      return at(costs.reduce_replicas, i.layer);
    case Op::kGather:
      return at(costs.gather, i.layer);
    case Op::kSumReplicated:
      return costs.sum_replicated;
    case Op::kAgree:
      return costs.agree;
    default:
      return 0.0;
  }
}

/// The instruction whose transfer an await waits for; kLoad: it is none.
Op started_by(Op op) {
  switch (op) {
    case Op::kAwaitUnshard:
      return Op::kUnshard;
    case Op::kAwaitReduce:
      return Op::kReduce;
    case Op::kAwaitReduceReplicas:
      return Op::kReduceReplicas;
    case Op::kAwaitGather:
      return Op::kGather;
    default:
      return Op::kLoad;
  }
}

class Machine {
 public:
  explicit Machine(std::span<const Costs> ranks) : costs_(ranks), ranks_(ranks.size()) {}

  void step(const Instruction& i) {
    if (const Op op = started_by(i.op); op != Op::kLoad) return await(ready_[{op, i.layer}]);
    switch (i.op) {
      case Op::kForward:
      case Op::kBackward:
      case Op::kOptimize:
        return compute(i);
      case Op::kSumReplicated:
      case Op::kAgree:
        return await(transfer(i));
      case Op::kLoad:
      case Op::kLoss:
      case Op::kReshard:
        return;
      default:
        ready_[{i.op, i.layer}] = transfer(i);
    }
  }

  [[nodiscard]] Prediction result() const {
    // Of ranks that end together at a last exchange, the one that kept the others waiting.
    const auto ends_first = [](const Prediction& a, const Prediction& b) {
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.exposed > b.exposed;
    };
    Prediction last = *std::max_element(ranks_.begin(), ranks_.end(), ends_first);
    last.communication = communication_;
    return last;
  }

 private:
  void compute(const Instruction& i) {
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      const double seconds = seconds_of(i, costs_[rank]);
      ranks_[rank].seconds += seconds;
      ranks_[rank].compute += seconds;
    }
  }
  double transfer(const Instruction& i) {
    double seconds = 0.0;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) {
      wire_free_ = std::max(wire_free_, ranks_[rank].seconds);
      seconds = std::max(seconds, seconds_of(i, costs_[rank]));
    }
    communication_ += seconds;
    return wire_free_ += seconds;
  }
  void await(double ready) {
    for (auto& rank : ranks_) {
      if (ready <= rank.seconds) continue;
      rank.exposed += ready - rank.seconds;
      rank.seconds = ready;
    }
  }

  std::span<const Costs> costs_;
  std::vector<Prediction> ranks_;
  double wire_free_ = 0.0;
  double communication_ = 0.0;
  std::map<std::pair<Op, int32_t>, double> ready_;  // arrival of the last transfer of a kind, by layer
};

}  // namespace

Prediction simulate(const Program& program, std::span<const Costs> ranks) {
  CHILIAD_CHECK(!ranks.empty());
  Machine machine(ranks);
  for (const auto& instruction : program.instructions) machine.step(instruction);
  return machine.result();
}

Prediction simulate(const Program& program, const Costs& costs) {
  return simulate(program, std::span(&costs, 1));
}

}  // namespace chiliad::schedule
