#include "chiliad/train/step_stage.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/device/tensor.h"
#include "chiliad/model/build_model.h"
#include "chiliad/objective/flow.h"
#include "chiliad/ops/adamw.h"
#include "chiliad/optim/ema.h"
#include "chiliad/optim/learning_rate.h"
#include "chiliad/parallel/replicated_sum.h"
#include "chiliad/text/byte_tokenizer.h"

namespace chiliad::train {
namespace {

// Layout of the exchange at the end of a step: one row of doubles a rank. Digests travel as 32-bit parts,
// exact in a double.
enum Field : size_t {
  kSquares,
  kLoss,
  kWeight,
  kVerdicts,
  kStop,
  kWorkSeconds,
  kFlops,
  kDigest0,
  kDigest1,
  kDigest2,
  kDigest3,
  kStep,
  kNumFields
};

std::vector<uint64_t> draw_keys(const std::vector<stepplan::Item>& items) {
  std::vector<uint64_t> keys;
  keys.reserve(items.size());
  for (const auto& item : items) keys.push_back(item.draw_key);
  return keys;
}

/// Tokens as int64 [B, T]; the rows of dropped captions are the null caption alone.
at::Tensor training_tokens(const loader::Batch& batch, const spec::ObjectiveOptions& options) {
  at::Tensor tokens = device::as_tensor(batch.tokens).to(at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  const int64_t length = tokens.size(1);
  for (size_t i = 0; i < batch.items.size(); ++i, data += length) {
    if (!objective::draw_caption_dropout(options, batch.items[i].draw_key)) continue;
    std::fill(data, data + length, int64_t{text::ByteTokenizer::kPad});
    data[0] = text::ByteTokenizer::kNull;
  }
  return tokens;
}

at::Tensor float_tensor(const std::vector<float>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

}  // namespace

StepStage::StepStage(const spec::RunFile& run, std::vector<std::unique_ptr<layers::Layer>>& layers,
                     std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards, parallel::Mesh& mesh)
    : run_(run), layers_(layers), shards_(shards), mesh_(mesh) {
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
    for (const auto& batch : step_.slots) local += static_cast<double>(batch.items.size());
    return std::max(1.0, local * mesh_.shape().dp());
  }
  return static_cast<double>(std::max<int64_t>(1, step_.num_items));
}

void StepStage::load(int32_t slot) {
  if (is_empty(slot)) return;
  const loader::Batch& batch = step_.slots[static_cast<size_t>(slot)];
  SlotState& state = slots_[static_cast<size_t>(slot)];
  const int64_t patch = run_.model.patch;
  const int64_t rows = batch.bucket.height / patch;
  const int64_t columns = batch.bucket.width / patch;
  const auto keys = draw_keys(batch.items);
  std::vector<float> times;
  std::vector<float> weights;
  for (const auto& item : batch.items) {
    times.push_back(objective::draw_time(run_.objective, item.draw_key));
    weights.push_back(item.weight);
    weight_sum_ += static_cast<double>(item.weight);
  }
  state.x0 = objective::patchify(device::as_tensor(batch.pixels), patch);
  state.noise = objective::draw_noise(keys, state.x0.size(1) * state.x0.size(2)).view(state.x0.sizes());
  state.time = float_tensor(times);
  state.weights = float_tensor(weights);
  const at::Tensor x_t = objective::interpolate(state.x0, state.noise, state.time);
  state.carry =
      model::make_input(run_.model, x_t, state.time, training_tokens(batch, run_.objective), rows, columns);
  state.segments.reserve(layers_.size());
}

void StepStage::forward(int32_t layer, int32_t slot) {
  if (is_empty(slot)) return;
  SlotState& state = slots_[static_cast<size_t>(slot)];
  auto segment = parallel::run_forward(*layers_[static_cast<size_t>(layer)], state.carry,
                                       {.needs_backward = layer >= first_trained_});
  if (layer >= first_trained_) state.segments.push_back(std::move(segment));
}

void StepStage::loss(int32_t slot) {
  if (is_empty(slot)) return;
  SlotState& state = slots_[static_cast<size_t>(slot)];
  at::Tensor prediction = state.carry.get("prediction").detach();
  prediction.set_requires_grad(true);
  const at::Tensor losses =
      objective::item_losses(run_.objective, prediction, state.x0, state.noise, state.time) *
      state.weights;  // [B]
  const at::Tensor total = losses.sum() / divisor();
  torch::autograd::backward({total}, {});
  state.gradients.set("prediction", prediction.grad());
  const at::Tensor values = losses.detach();
  const float* data = values.const_data_ptr<float>();
  for (int64_t i = 0; i < values.numel(); ++i) loss_sum_ += static_cast<double>(data[i]);
  state.carry = {};
}

void StepStage::backward(int32_t layer, int32_t slot) {
  shard(layer).open_gradients();
  if (is_empty(slot)) return;
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
    mine[kVerdicts] = static_cast<double>(step_.verdicts.size());
    mine[kWorkSeconds] = step_.predicted_work;
    mine[kFlops] = settings_.flops;
  }
  const Digest consumed = Hasher().add(step_.digest).add(settings_.program).digest();
  mine[kDigest0] = static_cast<double>(consumed.high >> 32);
  mine[kDigest1] = static_cast<double>(consumed.high & 0xFFFFFFFFU);
  mine[kDigest2] = static_cast<double>(consumed.low >> 32);
  mine[kDigest3] = static_cast<double>(consumed.low & 0xFFFFFFFFU);
  mine[kStep] = static_cast<double>(step_.step);
  at::Tensor in = at::empty({static_cast<int64_t>(kNumFields)}, at::kDouble);
  std::copy(mine.begin(), mine.end(), in.mutable_data_ptr<double>());
  auto& world = mesh_.world();
  at::Tensor out = at::empty({static_cast<int64_t>(kNumFields) * world.size()}, at::kDouble);
  world.all_gather(out, in)->wait();
  const std::span<const double> all(out.const_data_ptr<double>(), static_cast<size_t>(out.numel()));
  compare_digests(all, kNumFields);

  std::vector<double> sums(kNumFields, 0.0);
  double most_work = 0.0;
  for (size_t rank = 0; rank < static_cast<size_t>(mesh_.shape().size()); ++rank) {
    for (size_t field = 0; field < kNumFields; ++field) sums[field] += all[rank * kNumFields + field];
    most_work = std::max(most_work, all[rank * kNumFields + kWorkSeconds]);
  }
  agreement_.actual_items = sums[kWeight];
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
  if (before_update_) before_update_();
}

void StepStage::compare_digests(std::span<const double> all, size_t stride) const {
  for (size_t rank = 1; rank < static_cast<size_t>(mesh_.shape().size()); ++rank) {
    for (const size_t field : {kDigest0, kDigest1, kDigest2, kDigest3, kStep}) {
      if (all[rank * stride + field] == all[field]) continue;
      throw InternalError(
          fmt::format("step {}", step_.step),
          fmt::format("rank {} consumed other items or ran another program than rank 0 (its step: {})", rank,
                      static_cast<int64_t>(all[rank * stride + kStep])));
    }
  }
}

void StepStage::optimize(int32_t layer) {
  auto& shard = this->shard(layer);
  shard.clear_gradients();
  if (!updates_) return;
  ops::AdamWStep options;
  options.lr = settings_.lr;
  options.beta1 = run_.optimizer.beta1;
  options.beta2 = run_.optimizer.beta2;
  options.eps = run_.optimizer.eps;
  options.step = settings_.update;
  options.grad_scale = grad_scale_;
  options.ema = optim::ema_decay({.decay = run_.optimizer.ema}, settings_.update);
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
