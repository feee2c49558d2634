#include "tests/contract/layers/model_fixture.h"

#include <ATen/ATen.h>

#include "chiliad/base/hash.h"
#include "chiliad/base/rng.h"
#include "chiliad/model/build_model.h"

namespace chiliad::test {
namespace {

at::Tensor random_tensor(const std::vector<int64_t>& sizes, uint64_t key, at::ScalarType type) {
  at::Tensor tensor = at::empty(sizes, at::kFloat);
  Rng rng({key, 77});
  rng.fill_normal({tensor.mutable_data_ptr<float>(), static_cast<size_t>(tensor.numel())});
  return tensor.to(type);
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
