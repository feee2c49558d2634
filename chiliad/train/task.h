#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/loader/batch.h"
#include "chiliad/loader/run_inputs.h"
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
  /// The parts that the last `loss` added up, one an item, for families whose items have a time; others:
  /// none.
  [[nodiscard]] virtual std::vector<double> item_losses() const { return {}; }
};

/// Where the times of items lie in their density, by draw key: of items that are measured, not trained.
using TimeQuantiles = std::map<uint64_t, double>;

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

// What is given outlives the task.

/// Flow matching on pixels.
[[nodiscard]] std::unique_ptr<Task> make_flow_task(const spec::RunFile& run, layers::TensorParallel ranks,
                                                   const TimeQuantiles* times);
/// Flow matching or discrete diffusion on latents.
[[nodiscard]] std::unique_ptr<Task> make_latent_task(const spec::RunFile& run,
                                                     const loader::FeatureColumns& columns,
                                                     const TimeQuantiles* times);
/// Reconstruction by an autoencoder.
[[nodiscard]] std::unique_ptr<Task> make_autoencoder_task(const spec::RunFile& run);
/// Next-token prediction on documents.
[[nodiscard]] std::unique_ptr<Task> make_language_task(const spec::RunFile& run,
                                                       layers::TensorParallel ranks);
/// The one of the run's model family. times: of the items, where they are not drawn.
[[nodiscard]] std::unique_ptr<Task> make_task(const spec::RunFile& run, layers::TensorParallel ranks,
                                              const loader::RunInputs& inputs,
                                              const TimeQuantiles* times = nullptr);

/// What the draws of a micro-batch's items are keyed by.
[[nodiscard]] std::vector<uint64_t> draw_keys(const loader::Batch& batch);
/// Quantiles of those items.
[[nodiscard]] std::vector<double> quantiles_of(const TimeQuantiles& times, std::span<const uint64_t> keys);
/// Losses of items as doubles, and their sum in the order of items.   losses: [B] fp32 on the host
[[nodiscard]] std::vector<double> as_doubles(const at::Tensor& losses);
/// The weights of its items, fp32 [B].
[[nodiscard]] at::Tensor weights_of(const loader::Batch& batch);
/// Items of weight > 0 that a micro-batch really has: what the losses of pictures are an average of.
[[nodiscard]] double item_weights(const loader::Batch& batch);

}  // namespace chiliad::train
