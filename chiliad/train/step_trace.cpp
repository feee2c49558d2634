#include "chiliad/train/step_trace.h"

#include <optional>

namespace chiliad::train {
namespace {

using schedule::Op;

/// The instruction that waits for what `op` starts.
std::optional<Op> wait_for(Op op) {
  switch (op) {
    case Op::kReduce:
      return Op::kAwaitReduce;
    case Op::kGather:
      return Op::kAwaitGather;
    case Op::kUnshard:
      return Op::kAwaitUnshard;
    case Op::kReduceReplicas:
      return Op::kAwaitReduceReplicas;
    default:
      return std::nullopt;
  }
}

}  // namespace

void StepTrace::after(const schedule::Instruction& instruction) {
  if (recorder_ == nullptr) return;
  const Nanoseconds now = clock_->now();
  const char* name = schedule::op_name(instruction.op);
  recorder_->add({name, observe::kStepTrack, start_, now, instruction.layer, instruction.slot, false});
  if (const auto wait = wait_for(instruction.op))
    in_flight_[{*wait, instruction.layer}] = {instruction.op, start_};
  const auto flight = in_flight_.extract({instruction.op, instruction.layer});
  if (flight.empty()) return;
  const auto& [op, start] = flight.mapped();
  recorder_->add({schedule::op_name(op), observe::kFlightTrack, start, now, instruction.layer, -1, true});
}

}  // namespace chiliad::train
