#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/observe/trace_recorder.h"
#include "chiliad/schedule/program.h"

namespace chiliad::train {

/// Turns the instructions of a step into spans of its trace: one for each, and one for each exchange from
/// its start to the end of the wait for it.
class StepTrace {
 public:
  /// recorder: null where the step is not traced. Both outlive it.
  StepTrace(observe::TraceRecorder* recorder, const Clock& clock) : recorder_(recorder), clock_(&clock) {}

  void before() {
    if (recorder_ != nullptr) start_ = clock_->now();
  }
  void after(const schedule::Instruction& instruction);

 private:
  observe::TraceRecorder* recorder_;
  const Clock* clock_;
  Nanoseconds start_{0};
  struct Flight {
    schedule::Op op;
    Nanoseconds start;
  };
  std::map<std::pair<schedule::Op, int32_t>, Flight> in_flight_;  // by what waits for it, and layer
};

}  // namespace chiliad::train
