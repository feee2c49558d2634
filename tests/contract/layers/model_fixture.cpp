#include "tests/contract/layers/model_fixture.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/hash.h"
#include "chiliad/base/rng.h"
#include "chiliad/model/build_model.h"
#include "chiliad/model/diffusion.h"
#include "chiliad/model/language_model.h"

namespace chiliad::test {
namespace {

at::Tensor random_tensor(const std::vector<int64_t>& sizes, uint64_t key, at::ScalarType type) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  Rng rng({key, 77});
  rng.fill_normal({tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  return tensor.to(type);
}

layers::Carry image_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const at::Tensor patches = random_tensor(
      {shape.items, shape.rows * shape.columns, 3 * options.patch * options.patch}, 1, at::kFloat);
  const at::Tensor time = at::linspace(0.1, 0.9, shape.items, at::kFloat);
  at::Tensor tokens = at::zeros({shape.items, shape.text_tokens}, at::kLong);
  auto* data = tokens.mutable_data_ptr<int64_t>();
  Rng rng({2});
  for (int64_t item = 0; item < shape.items; ++item) {
    const int64_t length = std::max<int64_t>(1, shape.text_tokens - item);
    for (int64_t i = 0; i < length; ++i)
      data[item * shape.text_tokens + i] = static_cast<int64_t>(2 + rng.below(256));
  }
  return model::make_input(options, patches, time, tokens, shape.rows, shape.columns);
}

/// Latents of rows x columns patches and what the family is conditioned on; texts are all of one length.
layers::Carry latent_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const auto network = spec::diffusion_options(options);
  const auto random = [&](std::vector<int64_t> sizes, uint64_t key) {
    return random_tensor(sizes, key, at::kFloat);
  };
  model::LatentBatch batch;
  batch.latents = random(
      {shape.items, network.in_channels, shape.rows * network.patch, shape.columns * network.patch}, 1);
  batch.time = at::linspace(10.0, 900.0, shape.items, at::kFloat);
  if (options.family == "dit") batch.labels = at::arange(shape.items, at::kLong) % network.classes;
  if (network.text_channels > 0)
    batch.text = random({shape.items, shape.text_tokens, network.text_channels}, 2);
  if (network.pooled_channels > 0) batch.pooled = random({shape.items, network.pooled_channels}, 3);
  if (network.guidance) batch.guidance = at::linspace(1.0, 4.0, shape.items, at::kFloat);
  if (network.size_conditions) {
    batch.resolution = at::linspace(64.0, 128.0, 2 * shape.items, at::kFloat).view({shape.items, 2});
    batch.aspect_ratio = at::linspace(0.5, 2.0, shape.items, at::kFloat).unsqueeze(1);
  }
  return model::make_diffusion_input(network, batch);
}

layers::Carry autoencoder_input(const spec::ModelOptions& options, const TrialShape& shape) {
  const int64_t factor = spec::autoencoder_options(options).factor();
  layers::Carry carry;
  carry.set("pixels",
            random_tensor({shape.items, 3, factor * shape.rows, factor * shape.columns}, 1, at::kFloat));
  carry.set("noise",
            random_tensor({shape.items, options.latent_channels, shape.rows, shape.columns}, 2, at::kFloat));
  return carry;
}

layers::Carry language_input(const spec::ModelOptions& options, const TrialShape& shape) {
  std::vector<int64_t> ends{0};
  for (const int64_t length : shape.documents) ends.push_back(ends.back() + length);
  const int64_t num_tokens = ends.back();
  model::TextBatch batch;
  batch.cu_seqlens = at::empty({static_cast<int64_t>(ends.size())}, at::kLong);
  std::copy(ends.begin(), ends.end(), batch.cu_seqlens.mutable_data_ptr<int64_t>());
  batch.tokens = (at::arange(num_tokens, at::kLong) * 7 + 3) % options.vocabulary;
  batch.targets = (at::arange(num_tokens, at::kLong) * 5 + 1) % options.vocabulary;
  if (num_tokens > 1) batch.targets.narrow(0, 1, 1).fill_(-100);
  batch.token_weights = at::linspace(0.5, 1.5, num_tokens, at::kFloat);
  return model::make_text_input(options, batch);
}

layers::Carry input_of(const spec::ModelOptions& options, const TrialShape& shape) {
  if (spec::is_language_model(options)) return language_input(options, shape);
  if (spec::is_autoencoder(options)) return autoencoder_input(options, shape);
  return spec::is_latent_diffusion(options) ? latent_input(options, shape) : image_input(options, shape);
}

}  // namespace

std::vector<std::unique_ptr<layers::Layer>> make_random_model(const spec::ModelOptions& options,
                                                              at::ScalarType type) {
  auto layers = model::build_model(options);
  for (auto& layer : layers) {
    std::vector<at::Tensor> params;
    for (const auto& decl : layer->decl().params) {
      at::Tensor param = random_tensor(decl.shape.sizes(), hash64(decl.name), type) * 0.2;
      params.push_back(param.detach().set_requires_grad(true));
    }
    layer->bind(std::move(params));
  }
  return layers;
}

layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                               at::ScalarType type) {
  const layers::Carry made = input_of(options, shape);
  layers::Carry carry;
  for (const auto& [name, tensor] : made.entries()) {
    carry.set(name, tensor.is_floating_point() ? tensor.to(type) : tensor);
  }
  return carry;
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

spec::ModelOptions tiny_model() {
  spec::ModelOptions options;
  options.width = 16;
  options.depth = 2;
  options.heads = 2;
  options.patch = 2;
  options.mlp_ratio = 2;
  options.text_layers = 2;
  return options;
}

spec::ModelOptions tiny_language_model(const std::string& family, bool tied) {
  spec::ModelOptions options;
  options.family = family;
  options.width = 12;
  options.depth = 2;
  options.heads = 4;
  options.kv_heads = 2;
  options.head_size = 6;
  options.mlp_width = 20;
  options.vocabulary = 32;
  options.tied = tied;
  options.mlp_bias = options.attention_bias = family == "llama";
  return options;
}

spec::ModelOptions tiny_latent_model(const std::string& family) {
  spec::ModelOptions options;
  options.family = family;
  options.width = 24;
  options.depth = 2;
  options.heads = 2;
  options.patch = 2;
  if (family == "dit") {
    options.classes = 5;
    options.learned_variance = true;
  } else {
    options.text_channels = 10;
  }
  options.size_conditions = family == "pixart";
  if (family == "sd3" || family == "flux") options.pooled_channels = 6;
  if (family == "sd3") {
    options.max_positions = 16;
    options.dual_attention_layers = {0};
    options.qk_norm = true;
  }
  if (family == "flux") {
    options.single_depth = 1;
    options.guidance_input = true;
    options.rope_axes = {4, 4, 4};
  }
  return options;
}

spec::ModelOptions tiny_autoencoder() {
  spec::ModelOptions options;
  options.family = "autoencoder";
  options.stage_channels = {8, 12};
  options.layers_per_stage = 1;
  options.norm_groups = 4;
  return options;
}

std::vector<spec::ModelOptions> tiny_models() {
  return {tiny_model(),
          tiny_language_model("llama", false),
          tiny_language_model("qwen2", true),
          tiny_latent_model("dit"),
          tiny_latent_model("pixart"),
          tiny_latent_model("sd3"),
          tiny_latent_model("flux"),
          tiny_autoencoder()};
}

std::string model_name(const spec::ModelOptions& options) {
  return options.family == "pixel_dit" ? "pixelDit" : options.family + (options.tied ? "Tied" : "");
}

}  // namespace chiliad::test
