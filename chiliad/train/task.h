#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/loader/batch.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// One micro-batch in training: what goes into the first layer, and the loss of what comes out of the last.
class SlotTask {
 public:
  virtual ~SlotTask() = default;
  /// The carry of the first layer; asked for once.
  [[nodiscard]] virtual layers::Carry inputs() = 0;
  /// Puts the gradients of loss / divisor into `gradients`. Returns the part of the loss that this rank
  /// counts: over all ranks it is the sum of weight * loss.
  [[nodiscard]] virtual double loss(const layers::Carry& outputs, double divisor,
                                    layers::Carry& gradients) = 0;
};

/// What training does with the batches of a model family: what a loss is an average of, and how a micro-batch
/// gets one.
class Task {
 public:
  virtual ~Task() = default;
  [[nodiscard]] virtual std::unique_ptr<SlotTask> open(const loader::Batch& batch) const = 0;
  /// How much the loss of a step is divided by: items or tokens that the plan has, over all ranks.
  [[nodiscard]] virtual int64_t planned(const loader::RankStep& step) const = 0;
  /// How much of that a micro-batch really has.
  [[nodiscard]] virtual double actual(const loader::Batch& batch) const = 0;
};

/// Flow matching on pictures, and next-token prediction on documents. What is given outlives the task.
[[nodiscard]] std::unique_ptr<Task> make_flow_task(const spec::RunFile& run, layers::TensorParallel ranks);
[[nodiscard]] std::unique_ptr<Task> make_language_task(const spec::RunFile& run,
                                                       layers::TensorParallel ranks);
/// The one of the run's model family.
[[nodiscard]] std::unique_ptr<Task> make_task(const spec::RunFile& run, layers::TensorParallel ranks);

}  // namespace chiliad::train
