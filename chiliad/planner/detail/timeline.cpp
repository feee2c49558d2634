#include "chiliad/planner/detail/timeline.h"

#include <algorithm>
#include <map>
#include <string>

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/layer_tapes.h"

namespace chiliad::planner::detail {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kLong = 8;
constexpr int64_t kLossWork = 3;           // of the prediction's memory
constexpr int64_t kVarianceLossWork = 24;  // likelihoods of both halves, with their graph

bool is_trained(const spec::LayerDecl& layer, const spec::RunFile& file) {
  const auto& frozen = file.optimizer.frozen;
  return std::find(frozen.begin(), frozen.end(), layer.component) == frozen.end();
}

/// Pictures and noise of the latents; their mixture, positions and what they are conditioned on in the carry.
int64_t latent_input_bytes(const spec::ModelOptions& model, const spec::BatchShape& shape) {
  const int64_t tokens = shape.items * shape.image_tokens;
  const int64_t latents = tokens * model.latent_channels * model.patch * model.patch;
  const int64_t text = shape.items * (shape.text_tokens * model.text_channels + model.pooled_channels);
  const int64_t rows = shape.image_tokens + (model.family == "flux" ? shape.text_tokens : 0);
  const int64_t row = model.family == "flux" ? model.width / model.heads : model.width;
  return kFloat * (3 * latents + text + (model.family == "sd3" ? 0 : rows * row));
}

/// Pixels and the noise of the latents.
int64_t autoencoder_input_bytes(const spec::ModelOptions& model, const spec::BatchShape& shape) {
  const int64_t factor = spec::token_pixels(model);
  return kFloat * shape.items * shape.image_tokens * (3 * factor * factor + model.latent_channels);
}

/// Pictures, noise, their mixture, positions and captions; or tokens, targets, weights and rotary tables.
int64_t input_bytes(const spec::ModelOptions& model, const spec::BatchShape& shape) {
  const int64_t text = shape.items * shape.text_tokens;
  if (spec::is_language_model(model)) {
    const int64_t head_size = model.head_size == 0 ? model.width / model.heads : model.head_size;
    return text * (3 * kLong + kFloat + kFloat * head_size);
  }
  if (spec::is_latent_diffusion(model)) return latent_input_bytes(model, shape);
  if (spec::is_autoencoder(model)) return autoencoder_input_bytes(model, shape);
  const int64_t picture = shape.items * shape.image_tokens * 3 * model.patch * model.patch;
  const int64_t positions = (shape.image_tokens + shape.text_tokens) * model.width;
  return kFloat * (3 * picture + positions) + text * (kLong + 1 + kFloat);
}

}  // namespace

Timeline::Timeline(const spec::LayerTable& table, const spec::RunFile& file, const spec::BatchShape& shape) {
  TapeSetup setup;
  setup.shape = shape;
  setup.tp = file.parallel.tp;
  setup.value_bytes = file.parallel.compute == "fp32" ? kFloat : 2;
  setup.threads = file.parallel.threads;
  for (const auto& layer : table.layers) {
    setup.trained = is_trained(layer, file);
    layers_.push_back(layer_memory(layer, setup));
    CHILIAD_CHECK_EQ(layers_.back().outputs.size(), layer.writes.size());
    CHILIAD_CHECK_EQ(layers_.back().input_gradients.size(), layer.reads.size());
  }
  while (first_trained_ < table.layers.size() && !is_trained(table.layers[first_trained_], file)) {
    ++first_trained_;
  }
  inputs_ = input_bytes(file.model, shape);
  if (spec::is_language_model(file.model)) {
    loss_gradient_ = kFloat;
  } else {
    // Target, difference and its square; then the difference's double and the gradient.
    loss_gradient_ = layers_.back().outputs[0];
    // Losses are made in fp32.
    loss_work_ = (file.model.learned_variance ? kVarianceLossWork : kLossWork) * loss_gradient_ * kFloat /
                 setup.value_bytes;
  }
  find_entries(table);
}

void Timeline::find_entries(const spec::LayerTable& table) {
  std::map<std::string, std::pair<size_t, size_t>> current;  // entry to (layer, write)
  written_.resize(layers_.size());
  new_gradients_.resize(layers_.size());
  output_gradients_.resize(layers_.size());
  std::vector<std::vector<int64_t>> gradients(layers_.size());
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& decl = table.layers[i];
    for (size_t k = 0; k < decl.reads.size(); ++k) {
      const auto [writer, write] = current.at(decl.reads[k]);
      written_[writer][write].last_reader = i;
      gradients[writer][write] = layers_[i].input_gradients[k];
    }
    for (size_t k = 0; k < decl.writes.size(); ++k) {
      current[decl.writes[k]] = {i, k};
      written_[i].push_back({layers_[i].outputs[k], i});
      gradients[i].push_back(0);
    }
  }
  for (size_t i = 0; i < layers_.size(); ++i) {
    for (size_t k = 0; k < written_[i].size(); ++k) {
      output_gradients_[i] += gradients[i][k];
      if (i >= first_trained_) new_gradients_[written_[i][k].last_reader] += gradients[i][k];
    }
  }
}

ActivationMemory Timeline::run(const RecomputeModes& modes) const {
  CHILIAD_CHECK_EQ(modes.size(), layers_.size());
  ActivationMemory memory;
  memory.inputs = inputs_;
  const int64_t live = forward(modes, memory);
  memory.kept = live - inputs_;
  memory.peak = std::max(memory.peak, live + loss_work_);
  backward(modes, live + loss_gradient_, memory);
  return memory;
}

int64_t Timeline::forward(const RecomputeModes& modes, ActivationMemory& memory) const {
  int64_t live = inputs_;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const bool has_backward = i >= first_trained_;
    const auto& mode = layers_[i].of(has_backward ? modes[i] : spec::Recompute::kLayers);
    memory.peak = std::max(memory.peak, live + mode.forward);
    live += layers_[i].all_outputs() + (has_backward ? mode.kept : 0);
    for (size_t writer = 0; writer < std::min(i + 1, first_trained_); ++writer) {
      // Below the first trained layer only the newest of each entry is there.
      for (const Entry& entry : written_[writer]) {
        if (entry.last_reader == i && i < first_trained_ && writer < i) live -= entry.bytes;
      }
    }
  }
  return live;
}

void Timeline::backward(const RecomputeModes& modes, int64_t live, ActivationMemory& memory) const {
  for (size_t i = layers_.size(); i-- > first_trained_;) {
    const LayerMemory& layer = layers_[i];
    const auto& mode = layer.of(modes[i]);
    if (modes[i] == spec::Recompute::kLayers) live -= layer.all_outputs();
    memory.peak = std::max(memory.peak, live + mode.backward);
    if (modes[i] != spec::Recompute::kLayers) live -= layer.all_outputs() + mode.kept;
    live -= i + 1 == layers_.size() ? loss_gradient_ : output_gradients_[i];
    live += new_gradients_[i];
  }
}

}  // namespace chiliad::planner::detail
