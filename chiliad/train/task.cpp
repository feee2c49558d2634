#include "chiliad/train/task.h"

#include <ATen/ATen.h>

namespace chiliad::train {

std::unique_ptr<Task> make_task(const spec::RunFile& run, layers::TensorParallel ranks,
                                const loader::RunInputs& inputs, const TimeQuantiles* times) {
  if (spec::is_language_model(run.model)) return make_language_task(run, ranks);
  if (spec::is_latent_diffusion(run.model)) return make_latent_task(run, inputs.columns, times);
  if (spec::is_autoencoder(run.model)) return make_autoencoder_task(run);
  return make_flow_task(run, ranks, times);
}

std::vector<uint64_t> draw_keys(const loader::Batch& batch) {
  std::vector<uint64_t> keys;
  keys.reserve(batch.items.size());
  for (const auto& item : batch.items) keys.push_back(item.draw_key);
  return keys;
}

std::vector<double> quantiles_of(const TimeQuantiles& times, std::span<const uint64_t> keys) {
  std::vector<double> quantiles;
  quantiles.reserve(keys.size());
  for (const uint64_t key : keys) quantiles.push_back(times.at(key));
  return quantiles;
}

std::vector<double> as_doubles(const at::Tensor& losses) {
  const float* data = losses.const_data_ptr<float>();
  return {data, data + losses.numel()};
}

at::Tensor weights_of(const loader::Batch& batch) {
  at::Tensor weights = at::empty({std::ssize(batch.items)}, at::kFloat);
  auto* out = weights.mutable_data_ptr<float>();
  for (const auto& item : batch.items) *out++ = item.weight;
  return weights;
}

double item_weights(const loader::Batch& batch) {
  double weight = 0.0;
  for (const auto& item : batch.items) weight += static_cast<double>(item.weight);
  return weight;
}

}  // namespace chiliad::train
