#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "chiliad/base/rng.h"
#include "chiliad/ops/backward.h"
#include "chiliad/parallel/segment.h"
#include "tests/contract/layers/model_fixture.h"

namespace chiliad::layers {
namespace {

using test::make_random_model;
using test::make_trial_input;

class LayerContract : public testing::TestWithParam<spec::ModelOptions> {};
class SegmentChainContract : public testing::TestWithParam<spec::ModelOptions> {};

std::string name_of(const testing::TestParamInfo<spec::ModelOptions>& info) {
  return test::model_name(info.param);
}
INSTANTIATE_TEST_SUITE_P(Families, LayerContract, testing::ValuesIn(test::tiny_models()), name_of);
INSTANTIATE_TEST_SUITE_P(Families, SegmentChainContract, testing::ValuesIn(test::tiny_models()), name_of);

/// All kinds but those of text encoders, which are frozen and have tests of their own.
constexpr int kNumTrainedKinds =
    static_cast<int>(spec::LayerKind::kFluxHead) + 1 -
    (static_cast<int>(spec::LayerKind::kT5Norm) - static_cast<int>(spec::LayerKind::kBertEmbedding) + 1);

TEST(LayerContractTest, EveryKindIsTried) {
  std::set<spec::LayerKind> kinds;
  for (const auto& options : test::tiny_models()) {
    for (const auto& layer : make_random_model(options, at::kFloat)) kinds.insert(layer->decl().kind);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kNumTrainedKinds));
}

TEST_P(LayerContract, UsesEveryDeclaredParameter) {
  Carry carry = make_trial_input(GetParam(), {}, at::kDouble);
  for (const auto& layer : make_random_model(GetParam(), at::kDouble)) {
    Carry local = carry;
    layer->forward(local);
    at::Tensor sum = at::zeros({}, at::kDouble);
    for (const auto& name : layer->decl().writes) sum = sum + local.get(name).square().sum();
    ops::backward({sum}, {}, true);
    for (size_t i = 0; i < layer->params().size(); ++i) {
      EXPECT_TRUE(layer->params()[i].grad().defined()) << layer->decl().params[i].name;
    }
    for (const auto& name : layer->decl().writes) carry.set(name, local.get(name).detach());
  }
}

TEST_P(LayerContract, WritesWhatItDeclaresAndNothingElse) {
  Carry carry = make_trial_input(GetParam(), {}, at::kFloat);
  for (const auto& layer : make_random_model(GetParam(), at::kFloat)) {
    const Carry before = carry;
    layer->forward(carry);
    std::vector<std::string> written;
    for (const auto& [name, tensor] : carry.entries()) {
      if (!before.has(name) || !before.get(name).is_same(tensor)) written.push_back(name);
    }
    auto declared = layer->decl().writes;
    std::sort(written.begin(), written.end());
    std::sort(declared.begin(), declared.end());
    EXPECT_EQ(written, declared) << layer->decl().name;
  }
}

TEST_P(LayerContract, ReadsOnlyDeclaredEntriesOfEarlierLayers) {
  Carry carry = make_trial_input(GetParam(), {}, at::kFloat);
  const Carry inputs = carry;
  for (const auto& layer : make_random_model(GetParam(), at::kFloat)) {
    Carry least = inputs;
    for (const auto& name : layer->decl().reads) least.set(name, carry.get(name));
    EXPECT_NO_THROW(layer->forward(least)) << layer->decl().name;
    layer->forward(carry);
  }
}

/// Entries that layers write for reports alone.
bool is_report(const std::string& entry) {
  return entry == "token_losses";
}

/// A fixed random functional of the layer's outputs, so that every output counts.
double functional(const Layer& layer, const Carry& inputs, at::Tensor* graph = nullptr) {
  Carry local = inputs;
  layer.forward(local);
  at::Tensor sum = at::zeros({}, at::kDouble);
  for (const auto& name : layer.decl().writes) {
    if (is_report(name)) continue;
    const at::Tensor& value = local.get(name);
    const at::Tensor weights = at::cos(at::arange(value.numel(), at::kDouble) * 1.7).view(value.sizes());
    sum = sum + (value * weights).sum();
  }
  if (graph != nullptr) *graph = sum;
  return sum.detach().item<double>();
}

/// Central difference along one element of a leaf.
double difference(const Layer& layer, const Carry& inputs, const at::Tensor& leaf, int64_t element) {
  constexpr double kStep = 1e-5;
  const at::NoGradGuard no_grad;
  double* value = leaf.detach().mutable_data_ptr<double>() + element;
  const double kept = *value;
  *value = kept + kStep;
  const double above = functional(layer, inputs);
  *value = kept - kStep;
  const double below = functional(layer, inputs);
  *value = kept;
  return (above - below) / (2 * kStep);
}

TEST_P(LayerContract, GradientsAreThoseOfFiniteDifferences) {
  constexpr int kProbes = 3;
  Carry carry = make_trial_input(GetParam(), {}, at::kDouble);
  Rng rng({5});
  for (const auto& layer : make_random_model(GetParam(), at::kDouble)) {
    Carry inputs = carry;
    std::vector<std::pair<std::string, at::Tensor>> leaves;
    for (const auto& name : layer->decl().reads) {
      leaves.emplace_back(name, carry.get(name).detach().clone().contiguous().set_requires_grad(true));
      inputs.set(name, leaves.back().second);
    }
    for (size_t i = 0; i < layer->params().size(); ++i)
      leaves.emplace_back(layer->decl().params[i].name, layer->params()[i]);
    at::Tensor sum;
    (void)functional(*layer, inputs, &sum);
    ops::backward({sum});
    for (const auto& [name, leaf] : leaves) {
      for (int probe = 0; probe < kProbes; ++probe) {
        const auto element = static_cast<int64_t>(rng.below(static_cast<uint64_t>(leaf.numel())));
        const double exact = leaf.grad().contiguous().const_data_ptr<double>()[element];
        EXPECT_NEAR(difference(*layer, inputs, leaf, element), exact, 1e-6 * std::max(1.0, std::abs(exact)))
            << layer->decl().name << " " << name << " element " << element;
      }
    }
    const at::NoGradGuard no_grad;
    layer->forward(carry);
  }
}

/// What a training step makes a loss of.
std::string output_of(const spec::ModelOptions& options) {
  if (spec::is_language_model(options)) return "loss";
  return spec::is_autoencoder(options) ? "reconstruction" : "prediction";
}

at::Tensor loss_of(const at::Tensor& output) {
  return (output - 0.3).square().mean();
}

TEST_P(SegmentChainContract, GradientsAreThoseOfOneGraph) {
  const std::string output = output_of(GetParam());
  const auto whole = make_random_model(GetParam(), at::kDouble);
  Carry carry = make_trial_input(GetParam(), {}, at::kDouble);
  for (const auto& layer : whole) layer->forward(carry);
  ops::backward({loss_of(carry.get(output))});

  const auto cut = make_random_model(GetParam(), at::kDouble);
  carry = make_trial_input(GetParam(), {}, at::kDouble);
  std::vector<parallel::Segment> segments;
  for (const auto& layer : cut) segments.push_back(parallel::run_forward(*layer, carry));
  at::Tensor made = carry.get(output).detach().set_requires_grad(true);
  ops::backward({loss_of(made)});
  Carry gradients;
  gradients.set(output, made.grad());
  for (; !segments.empty(); segments.pop_back())
    parallel::run_backward(std::move(segments.back()), gradients);

  for (size_t layer = 0; layer < whole.size(); ++layer) {
    for (size_t i = 0; i < whole[layer]->params().size(); ++i) {
      const at::Tensor& expected = whole[layer]->params()[i].grad();
      const at::Tensor& actual = cut[layer]->params()[i].grad();
      const std::string& name = whole[layer]->decl().params[i].name;
      ASSERT_TRUE(actual.defined()) << name;
      EXPECT_TRUE(at::allclose(actual, expected, 1e-6, 1e-12)) << name;
    }
  }
}

}  // namespace
}  // namespace chiliad::layers
