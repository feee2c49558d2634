#include "chiliad/train/step_stage.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/ops/adamw.h"
#include "chiliad/optim/ema.h"
#include "chiliad/optim/learning_rate.h"
#include "chiliad/parallel/replicated_sum.h"
#include "chiliad/planner/recompute_choice.h"
#include "chiliad/stepplan/work_model.h"
#include "chiliad/train/consistency.h"

namespace chiliad::train {
namespace {

// Layout of the exchange at the end of a step: one row of doubles a rank. Digests travel as 32-bit parts,
// exact in a double.
enum Field : size_t {
  kSquares,
  kLoss,
  kWeight,
  kItems,
  kVerdicts,
  kStop,
  kWorkSeconds,
  kFlops,
  kDigest0,
  kDigest1,
  kDigest2,
  kDigest3,
  kProgram0,
  kProgram1,
  kStep,
  kConsumed0,
  kConsumed1,
  kNumFields
};

void put(uint64_t value, double* parts) {
  parts[0] = static_cast<double>(value >> 32);
  parts[1] = static_cast<double>(value & 0xFFFFFFFFU);
}
uint64_t get(const double* parts) {
  return static_cast<uint64_t>(parts[0]) << 32 | static_cast<uint64_t>(parts[1]);
}

}  // namespace

StepStage::StepStage(const spec::RunFile& run, std::vector<std::unique_ptr<layers::Layer>>& layers,
                     std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards, parallel::Mesh& mesh,
                     const loader::RunInputs& inputs)
    : run_(run),
      layers_(layers),
      shards_(shards),
      mesh_(mesh),
      task_(make_task(run, mesh.tensor_parallel(), inputs)),
      recompute_(planner::choose_recompute(spec::make_layer_table(run.model), run,
                                           stepplan::largest_batches(run.model, run.data))
                     .modes) {
  while (first_trained_ < std::ssize(shards_) && !shard(first_trained_).trained()) ++first_trained_;
}

parallel::ShardedLayer& StepStage::shard(int32_t layer) const {
  return *shards_[static_cast<size_t>(layer)];
}

void StepStage::begin(loader::RankStep step, const StepSettings& settings) {
  step_ = std::move(step);
  settings_ = settings;
  loss_sum_ = 0.0;
  weight_sum_ = 0.0;
  items_sum_ = 0;
  updates_ = false;
  agreement_ = {};
  slots_.clear();
  slots_.resize(step_.slots.size());
}

bool StepStage::is_empty(int32_t slot) const {
  return step_.slots[static_cast<size_t>(slot)].items.empty();
}

double StepStage::divisor() const {
  if (planted_bug("wrong_normaliser")) {
    double local = 0.0;
    for (const auto& batch : step_.slots) local += task_->actual(batch);
    return std::max(1.0, local * mesh_.shape().dp());
  }
  return static_cast<double>(std::max<int64_t>(1, task_->planned(step_)));
}

void StepStage::load(int32_t slot) {
  if (is_empty(slot)) return;
  const loader::Batch& batch = step_.slots[static_cast<size_t>(slot)];
  SlotState& state = slots_[static_cast<size_t>(slot)];
  weight_sum_ += task_->actual(batch);
  items_sum_ += std::count_if(batch.items.begin(), batch.items.end(),
                              [](const auto& item) { return item.weight > 0.0F; });
  state.task = task_->open(batch);
  state.carry = state.task->inputs();
  state.segments.reserve(layers_.size());
}

void StepStage::forward(int32_t layer, int32_t slot) {
  if (is_empty(slot)) return;
  SlotState& state = slots_[static_cast<size_t>(slot)];
  parallel::ForwardOptions options;
  options.needs_backward = layer >= first_trained_;
  options.recompute = recompute_[static_cast<size_t>(layer)];
  auto segment = parallel::run_forward(*layers_[static_cast<size_t>(layer)], state.carry, options);
  if (layer >= first_trained_) state.segments.push_back(std::move(segment));
}

void StepStage::loss(int32_t slot) {
  if (is_empty(slot)) return;
  SlotState& state = slots_[static_cast<size_t>(slot)];
  loss_sum_ += state.task->loss(state.carry, divisor(), state.gradients);
  state.carry = {};
}

void StepStage::backward(int32_t layer, int32_t slot) {
  shard(layer).open_gradients();
  if (!is_empty(slot)) backward_of_items(layer, slot);
  shard(layer).close_gradients();
}

void StepStage::backward_of_items(int32_t layer, int32_t slot) {
  SlotState& state = slots_[static_cast<size_t>(slot)];
  CHILIAD_CHECK_EQ(static_cast<int32_t>(state.segments.size()), layer - first_trained_ + 1);
  parallel::Segment segment = std::move(state.segments.back());
  state.segments.pop_back();
  parallel::run_backward(std::move(segment), state.gradients);
  if (layer == first_trained_) state = {};
}

void StepStage::reduce(int32_t layer) {
  shard(layer).start_reduce();
}
void StepStage::await_reduce(int32_t layer) {
  shard(layer).finish_reduce();
}
void StepStage::reduce_replicas(int32_t layer) {
  shard(layer).start_reduce_replicas();
}
void StepStage::await_reduce_replicas(int32_t layer) {
  shard(layer).finish_reduce_replicas();
}
void StepStage::sum_replicated() {
  parallel::sum_replicated_gradients(mesh_.tp_control(), shards_);
}
void StepStage::unshard(int32_t layer) {
  shard(layer).start_unshard();
}
void StepStage::await_unshard(int32_t layer) {
  shard(layer).finish_unshard();
}
void StepStage::reshard(int32_t layer) {
  shard(layer).reshard();
}

double StepStage::sum_of_squares() const {
  double sum = 0.0;
  for (const auto& shard : shards_) {
    if (!shard->trained()) continue;
    for (const auto& piece : shard->layout().owned_pieces()) {
      if (piece.replicated && !counts()) continue;
      sum += ops::sum_of_squares(shard->owned_gradients() + piece.offset, piece.count);
    }
  }
  return sum;
}

void StepStage::agree() {
  std::vector<double> mine(kNumFields, 0.0);
  mine[kSquares] = sum_of_squares();
  mine[kLoss] = loss_sum_;
  mine[kStop] = settings_.stop_requested ? 1.0 : 0.0;
  if (counts()) {
    mine[kWeight] = weight_sum_;
    mine[kItems] = static_cast<double>(items_sum_);
    mine[kVerdicts] = static_cast<double>(step_.verdicts.size());
    mine[kWorkSeconds] = step_.predicted_work;
    mine[kFlops] = settings_.flops;
  }
  put(step_.digest.high, &mine[kDigest0]);
  put(step_.digest.low, &mine[kDigest2]);
  put(settings_.program.low, &mine[kProgram0]);
  put(step_.consumed, &mine[kConsumed0]);
  mine[kStep] = static_cast<double>(step_.step);
  at::Tensor in = at::empty({static_cast<int64_t>(kNumFields)}, at::kDouble);
  std::copy(mine.begin(), mine.end(), in.mutable_data_ptr<double>());
  auto& world = mesh_.world();
  at::Tensor out = at::empty({static_cast<int64_t>(kNumFields) * world.size()}, at::kDouble);
  world.all_gather(out, in)->wait();
  const std::span<const double> all(out.const_data_ptr<double>(), static_cast<size_t>(out.numel()));
  compare_claims(all);
  agreement_.consumed = compare_consumed(all);

  std::vector<double> sums(kNumFields, 0.0);
  double most_work = 0.0;
  for (size_t rank = 0; rank < static_cast<size_t>(mesh_.shape().size()); ++rank) {
    for (size_t field = 0; field < kNumFields; ++field) sums[field] += all[rank * kNumFields + field];
    most_work = std::max(most_work, all[rank * kNumFields + kWorkSeconds]);
  }
  agreement_.actual_items = sums[kItems];
  agreement_.actual_weight = sums[kWeight];
  agreement_.planned_weight = divisor();
  agreement_.loss = sums[kWeight] > 0.0 ? sums[kLoss] / sums[kWeight] : 0.0;
  agreement_.num_verdicts = sums[kVerdicts];
  agreement_.flops = sums[kFlops];
  agreement_.stop = sums[kStop] > 0.0;
  if (sums[kWorkSeconds] > 0.0) agreement_.imbalance = most_work * mesh_.shape().dp() / sums[kWorkSeconds];
  agreement_.finite = std::isfinite(sums[kSquares]) && std::isfinite(sums[kLoss]);
  const double planned_over_actual = sums[kWeight] > 0.0 ? divisor() / sums[kWeight] : 0.0;
  agreement_.grad_norm = std::sqrt(sums[kSquares]) * planned_over_actual;
  grad_scale_ = planned_over_actual * optim::clip_factor(agreement_.grad_norm, run_.optimizer.clip);
  updates_ = agreement_.finite && sums[kWeight] > 0.0;
  // Before the update: it would spread what was damaged since the last one to all replicas.
  if (settings_.check_parameters) check_parameters(shards_, mesh_, step_.step);
  if (before_update_) before_update_();
}

void StepStage::compare_claims(std::span<const double> all) const {
  std::vector<StepClaim> claims;
  for (; !all.empty(); all = all.subspan(kNumFields)) {
    claims.push_back(
        {static_cast<int64_t>(all[kStep]), {get(&all[kDigest0]), get(&all[kDigest2])}, get(&all[kProgram0])});
  }
  check_claims(step_.step, claims);
}

uint64_t StepStage::compare_consumed(std::span<const double> all) const {
  std::vector<uint64_t> consumed;
  for (; !all.empty(); all = all.subspan(kNumFields)) consumed.push_back(get(&all[kConsumed0]));
  const auto tp = static_cast<size_t>(mesh_.shape().tp);
  uint64_t sum = 0;
  bool alike = true;
  for (size_t rank = 0; rank < consumed.size(); ++rank) {
    if (rank % tp == 0) sum += consumed[rank];
    alike = alike && consumed[rank] == consumed[rank - rank % tp];
  }
  if (!alike && on_other_data_) on_other_data_(consumed);
  return sum;
}

void StepStage::optimize(int32_t layer) {
  auto& shard = this->shard(layer);
  shard.begin_update();
  if (!updates_) return;
  ops::AdamWStep options;
  options.lr = settings_.lr;
  options.beta1 = run_.optimizer.beta1;
  options.beta2 = run_.optimizer.beta2;
  options.eps = run_.optimizer.eps;
  options.step = settings_.update;
  options.grad_scale = grad_scale_;
  options.ema = optim::ema_decay(optim::ema_options(run_.optimizer), settings_.update);
  for (const auto& piece : shard.layout().owned_pieces()) {
    options.weight_decay = piece.param->decay ? run_.optimizer.weight_decay : 0.0;
    float* average = shard.average();
    ops::adamw(options, piece.count, shard.owned_params() + piece.offset,
               shard.owned_gradients() + piece.offset, shard.exp_avg() + piece.offset,
               shard.exp_avg_sq() + piece.offset, average == nullptr ? nullptr : average + piece.offset);
  }
}

void StepStage::gather(int32_t layer) {
  shard(layer).start_gather();
}

void StepStage::await_gather(int32_t layer) {
  shard(layer).finish_gather();
}

}  // namespace chiliad::train
