#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/loader/batch.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/parallel/sharded_layer.h"
#include "chiliad/schedule/executor.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/train/task.h"

namespace chiliad::train {

/// What all ranks know after the exchange at the end of a step; the same on every rank.
struct Agreement {
  double loss = 0.0;            ///< mean over the items, or tokens, of weight > 0
  double grad_norm = 0.0;       ///< of the mean gradient, before clipping
  double actual_items = 0.0;    ///< items of weight > 0 that were really used
  double actual_weight = 0.0;   ///< what the loss is an average of: items, or tokens with a target
  double planned_weight = 0.0;  ///< the same as planned
  double num_verdicts = 0.0;    ///< findings of this step, over all ranks
  bool finite = true;
  bool stop = false;       ///< somebody was asked to stop
  double imbalance = 1.0;  ///< max / mean of the predicted work
  double flops = 0.0;      ///< of the model, over all ranks
  uint64_t consumed = 0;  ///< sum of the digests of all items' data, each counted once: alike in every layout
};

/// What a step needs beside its batches.
struct StepSettings {
  double lr = 0.0;
  int64_t update = 1;  ///< counts optimizer updates from 1
  double flops = 0.0;  ///< of the model, this rank
  Digest program;      ///< of what this rank runs; compared with the other ranks'
  bool stop_requested = false;
  bool check_parameters = false;  ///< compare those that several ranks have, before they change
};

/// The instructions of a step, carried out on the layers of one rank.
class StepStage final : public schedule::Stage {
 public:
  /// Everything given outlives the stage.
  StepStage(const spec::RunFile& run, std::vector<std::unique_ptr<layers::Layer>>& layers,
            std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards, parallel::Mesh& mesh,
            const loader::RunInputs& inputs);

  /// Makes ready for one step.
  void begin(loader::RankStep step, const StepSettings& settings);
  /// Runs before the first parameter changes (a snapshot of the step before may still be copying).
  void set_before_update(std::function<void()> wait) { before_update_ = std::move(wait); }

  /// Called on all ranks where tensor-parallel ranks did not load the same, with what each loaded
  /// (RankStep::consumed, [rank]); it throws.
  void set_on_other_data(std::function<void(std::span<const uint64_t>)> refuse) {
    on_other_data_ = std::move(refuse);
  }

  [[nodiscard]] const Agreement& agreement() const { return agreement_; }
  /// Whether the optimizer ran (not after non-finite gradients or a step without items).
  [[nodiscard]] bool updated() const { return updates_; }
  [[nodiscard]] const loader::RankStep& step() const { return step_; }

  void load(int32_t slot) override;
  void forward(int32_t layer, int32_t slot) override;
  void loss(int32_t slot) override;
  void backward(int32_t layer, int32_t slot) override;
  void reduce(int32_t layer) override;
  void await_reduce(int32_t layer) override;
  void agree() override;
  void optimize(int32_t layer) override;
  void gather(int32_t layer) override;
  void await_gather(int32_t layer) override;
  void unshard(int32_t layer) override;
  void await_unshard(int32_t layer) override;
  void reshard(int32_t layer) override;
  void reduce_replicas(int32_t layer) override;
  void await_reduce_replicas(int32_t layer) override;
  void sum_replicated() override;

 private:
  struct SlotState {
    layers::Carry carry;
    layers::Carry gradients;
    std::vector<parallel::Segment> segments;  // of the layers that have a backward, from the first one on
    std::unique_ptr<SlotTask> task;
  };

  [[nodiscard]] bool is_empty(int32_t slot) const;
  void backward_of_items(int32_t layer, int32_t slot);
  [[nodiscard]] parallel::ShardedLayer& shard(int32_t layer) const;
  /// The first of the tensor-parallel ranks: what all of them have alike is counted once, here.
  [[nodiscard]] bool counts() const { return mesh_.place().tp == 0; }
  [[nodiscard]] double sum_of_squares() const;
  [[nodiscard]] double divisor() const;
  void compare_claims(std::span<const double> all) const;
  /// Of what the ranks loaded; the sum over the data-parallel ones.
  [[nodiscard]] uint64_t compare_consumed(std::span<const double> all) const;

  const spec::RunFile& run_;
  std::vector<std::unique_ptr<layers::Layer>>& layers_;
  std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards_;
  parallel::Mesh& mesh_;
  std::unique_ptr<Task> task_;
  std::vector<spec::Recompute> recompute_;  // of each layer
  std::function<void()> before_update_;
  std::function<void(std::span<const uint64_t>)> on_other_data_;
  int32_t first_trained_ = 0;

  loader::RankStep step_;
  StepSettings settings_;
  double loss_sum_ = 0.0;
  double weight_sum_ = 0.0;
  int64_t items_sum_ = 0;
  double grad_scale_ = 1.0;
  bool updates_ = false;
  std::vector<SlotState> slots_;
  Agreement agreement_;
};

}  // namespace chiliad::train
