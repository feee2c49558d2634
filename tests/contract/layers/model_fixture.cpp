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

layers::Carry make_trial_input(const spec::ModelOptions& options, const TrialShape& shape,
                               at::ScalarType type) {
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
  const layers::Carry made = model::make_input(options, patches, time, tokens, shape.rows, shape.columns);
  layers::Carry carry;
  for (const auto& [name, tensor] : made.entries()) {
    carry.set(name, tensor.is_floating_point() ? tensor.to(type) : tensor);
  }
  return carry;
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

}  // namespace chiliad::test
