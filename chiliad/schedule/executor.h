#pragma once

#include <cstdint>

#include "chiliad/schedule/program.h"

namespace chiliad::schedule {

/// What the instructions of a program act on; the torch half implements it (parallel/), tests have a
/// recording one.
class Stage {
 public:
  virtual ~Stage() = default;
  virtual void load(int32_t slot) = 0;
  virtual void forward(int32_t layer, int32_t slot) = 0;
  virtual void loss(int32_t slot) = 0;
  virtual void backward(int32_t layer, int32_t slot) = 0;
  virtual void reduce(int32_t layer) = 0;
  virtual void await_reduce(int32_t layer) = 0;
  virtual void agree() = 0;
  virtual void optimize(int32_t layer) = 0;
  virtual void gather(int32_t layer) = 0;
  virtual void await_gather(int32_t layer) = 0;
  virtual void unshard(int32_t layer) = 0;
  virtual void await_unshard(int32_t layer) = 0;
  virtual void reshard(int32_t layer) = 0;
  virtual void reduce_replicas(int32_t layer) = 0;
  virtual void await_reduce_replicas(int32_t layer) = 0;
  virtual void sum_replicated() = 0;
};

/// Told of each instruction before it runs, e.g. to write the progress page and the time account.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void before(int32_t index, const Instruction& instruction) = 0;
  virtual void after(int32_t index, const Instruction& instruction) = 0;
};

/// Runs the program on the stage, in order, on this thread. Exceptions of the stage pass through.
void execute(const Program& program, Stage& stage, Watcher& watcher);

}  // namespace chiliad::schedule
