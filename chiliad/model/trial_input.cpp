#include "chiliad/model/trial_input.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>

#include "chiliad/base/rng.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/model/language_model.h"

namespace chiliad::model {
namespace {

at::Tensor random_tensor(const std::vector<int64_t>& sizes, uint64_t key) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  Rng rng({key, 77});
  rng.fill_normal({tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  return tensor;
}

layers::Carry image_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const at::Tensor patches =
      random_tensor({shape.items, shape.rows * shape.columns, 3 * options.patch * options.patch}, 1);
  const at::Tensor time = at::linspace(0.1, 0.9, shape.items, at::kFloat);
  at::Tensor tokens = at::zeros({shape.items, shape.text_tokens}, at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  Rng rng({2});
  for (int64_t item = 0; item < shape.items; ++item) {
    const int64_t length = std::max<int64_t>(1, shape.text_tokens - item);
    for (int64_t i = 0; i < length; ++i)
      data[item * shape.text_tokens + i] = static_cast<int64_t>(2 + rng.below(256));
  }
  return make_input(options, patches, time, tokens, shape.rows, shape.columns);
}

/// Latents of rows x columns patches and what the family is conditioned on; texts are all of one length.
layers::Carry latent_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const auto network = spec::diffusion_options(options);
  LatentBatch batch;
  batch.latents = random_tensor(
      {shape.items, network.in_channels, shape.rows * network.patch, shape.columns * network.patch}, 1);
  batch.time = at::linspace(10.0, 900.0, shape.items, at::kFloat);
  if (options.family == "dit") batch.labels = at::arange(shape.items, at::kLong) % network.classes;
  if (network.text_channels > 0)
    batch.text = random_tensor({shape.items, shape.text_tokens, network.text_channels}, 2);
  if (network.pooled_channels > 0) batch.pooled = random_tensor({shape.items, network.pooled_channels}, 3);
  if (network.guidance) batch.guidance = at::linspace(1.0, 4.0, shape.items, at::kFloat);
  if (network.size_conditions) {
    batch.resolution = at::linspace(64.0, 128.0, 2 * shape.items, at::kFloat).view({shape.items, 2});
    batch.aspect_ratio = at::linspace(0.5, 2.0, shape.items, at::kFloat).unsqueeze(1);
  }
  return make_diffusion_input(network, batch);
}

layers::Carry autoencoder_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const int64_t factor = spec::autoencoder_options(options).factor();
  layers::Carry carry;
  carry.set("pixels", random_tensor({shape.items, 3, factor * shape.rows, factor * shape.columns}, 1));
  carry.set("noise", random_tensor({shape.items, options.latent_channels, shape.rows, shape.columns}, 2));
  return carry;
}

layers::Carry language_input(const spec::ModelOptions& options, const TrialShape& shape) {
  std::vector<int64_t> ends{0};
  for (const int64_t length : shape.documents) ends.push_back(ends.back() + length);
  const int64_t num_tokens = ends.back();
  TextBatch batch;
  batch.cu_seqlens = at::empty({static_cast<int64_t>(ends.size())}, at::kLong);
  std::copy(ends.begin(), ends.end(), batch.cu_seqlens.mutable_data_ptr<int64_t>());
  batch.tokens = (at::arange(num_tokens, at::kLong) * 7 + 3) % options.vocabulary;
  batch.targets = (at::arange(num_tokens, at::kLong) * 5 + 1) % options.vocabulary;
  if (num_tokens > 1) batch.targets.narrow(0, 1, 1).fill_(-100);
  batch.token_weights = at::linspace(0.5, 1.5, num_tokens, at::kFloat);
  return make_text_input(options, batch);
}

layers::Carry input_of(const spec::ModelOptions& options, const TrialShape& shape) {
  if (spec::is_language_model(options)) return language_input(options, shape);
  if (spec::is_autoencoder(options)) return autoencoder_input(options, shape);
  return spec::is_latent_diffusion(options) ? latent_input(options, shape) : image_input(options, shape);
}

}  // namespace

layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                               at::ScalarType type) {
  const layers::Carry made = input_of(options, shape);
  layers::Carry carry;
  for (const auto& [name, tensor] : made.entries()) {
    carry.set(name, tensor.is_floating_point() ? tensor.to(type) : tensor);
  }
  return carry;
}

TrialShape trial_shape(const spec::BatchShape& shape) {
  TrialShape made{shape.items, 1, shape.image_tokens, shape.text_tokens, {}};
  made.rows = std::max<int64_t>(1, static_cast<int64_t>(std::sqrt(static_cast<double>(shape.image_tokens))));
  while (shape.image_tokens % made.rows != 0) --made.rows;
  made.columns = shape.image_tokens / made.rows;
  const int64_t tokens = shape.items * shape.text_tokens;
  const double pairs =
      shape.attention_pairs > 0.0 ? shape.attention_pairs : static_cast<double>(tokens * shape.text_tokens);
  const auto length =
      std::max<int64_t>(1, std::llround(pairs / static_cast<double>(std::max<int64_t>(1, tokens))));
  for (int64_t done = 0; done < tokens; done += length)
    made.documents.push_back(std::min(length, tokens - done));
  return made;
}

spec::BatchShape batch_shape(const spec::ModelOptions& options, const TrialShape& shape) {
  if (!spec::is_language_model(options)) {
    return {shape.items, shape.rows * shape.columns, spec::reads_captions(options) ? shape.text_tokens : 0,
            0.0};
  }
  spec::BatchShape batch{1, 0, 0, 0.0};
  for (const int64_t length : shape.documents) {
    batch.text_tokens += length;
    batch.attention_pairs += static_cast<double>(length * length);
  }
  return batch;
}

}  // namespace chiliad::model
