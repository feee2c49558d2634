#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include "chiliad/spec/layer_table.h"
#include "tests/contract/layers/model_fixture.h"

namespace chiliad::layers {
namespace {

/// Products seen in a forward pass, from the shapes that the operators were called with.
struct Counted {
  double linear_flops = 0.0;
  double attention_flops = 0.0;
  int num_unknown = 0;  ///< products of kinds that are not counted here
  int inside = 0;       ///< composite operators that are running: what they call is theirs
};

thread_local Counted counted;

bool is_composite(const std::string& name) {
  return name == "aten::linear" || name == "aten::scaled_dot_product_attention" || name == "aten::conv2d";
}

/// Of a convolution whose inputs are (x [B, C, H, W], kernel [out, C, k, k], bias, stride, padding, ...).
double convolution_flops(c10::ArrayRef<const c10::IValue> inputs) {
  const auto& x = inputs[0].toTensor();
  const auto& kernel = inputs[1].toTensor();
  const int64_t stride = inputs[3].toIntVector()[0];
  const int64_t padding = inputs[4].toIntVector()[0];
  double positions = static_cast<double>(x.size(0));
  for (const int64_t side : {x.size(2), x.size(3)})
    positions *= static_cast<double>((side + 2 * padding - kernel.size(2)) / stride + 1);
  return 2.0 * positions * static_cast<double>(kernel.numel());
}

void leave_call(const at::RecordFunction& call, at::ObserverContext* /*context*/) {
  if (is_composite(call.name())) --counted.inside;
}

/// Multiply-adds of every matrix product of `call`, twice. Composite operators call others, which are not
/// counted again.
std::unique_ptr<at::ObserverContext> count_call(const at::RecordFunction& call) {
  const std::string name = call.name();
  const auto inputs = call.inputs();
  const auto shape = [&](size_t i) { return inputs[i].toTensor().sizes(); };
  if (is_composite(name)) ++counted.inside;
  if (name == "aten::linear") {
    const auto weight = shape(1);
    counted.linear_flops += 2.0 * static_cast<double>(inputs[0].toTensor().numel() * weight[0]);
  } else if (name == "aten::scaled_dot_product_attention") {
    const auto q = shape(0);  // [B, heads, N, d]
    counted.attention_flops +=
        4.0 * static_cast<double>(inputs[0].toTensor().numel() * shape(1)[q.size() - 2]);
  } else if (name == "aten::conv2d") {
    counted.linear_flops += convolution_flops(inputs);
  } else if (counted.inside > 0) {
    return nullptr;
  } else if (name == "aten::matmul" || name == "aten::einsum") {
    ++counted.num_unknown;
  }
  return nullptr;
}

Counted count_forward(const Layer& layer, Carry& carry) {
  counted = {};
  const auto handle = at::addThreadLocalCallback(at::RecordFunctionCallback(count_call, leave_call)
                                                     .needsInputs(true)
                                                     .scopes({at::RecordScope::FUNCTION}));
  layer.forward(carry);
  at::removeCallback(handle);
  return counted;
}

struct Trial {
  const char* name;
  spec::ModelOptions options;
  test::TrialShape shape;
};

class LayerFlops : public testing::TestWithParam<Trial> {};

spec::ModelOptions image_model(int64_t width, int64_t heads, int64_t patch) {
  spec::ModelOptions options = test::tiny_model();
  options.width = width;
  options.heads = heads;
  options.patch = patch;
  return options;
}

test::TrialShape documents(std::vector<int64_t> lengths) {
  test::TrialShape shape;
  shape.documents = std::move(lengths);
  return shape;
}

TEST_P(LayerFlops, DeclaredFlopsAreTheCountedOnes) {
  const at::NoGradGuard no_grad;
  const auto& options = GetParam().options;
  const auto& shape = GetParam().shape;
  Carry carry = test::make_trial_input(options, shape, at::kFloat);
  for (const auto& layer : test::make_random_model(options, at::kFloat)) {
    const spec::Work declared = layer->decl().forward(test::batch_shape(options, shape));
    const Counted found = count_forward(*layer, carry);
    EXPECT_DOUBLE_EQ(found.linear_flops, declared.linear_flops) << layer->decl().name;
    EXPECT_DOUBLE_EQ(found.attention_flops, declared.attention_flops) << layer->decl().name;
    EXPECT_EQ(found.num_unknown, 0) << layer->decl().name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, LayerFlops,
    testing::Values(Trial{"tiny", image_model(16, 2, 2), {2, 2, 3, 5}},
                    Trial{"wide", image_model(48, 4, 4), {3, 4, 4, 7}},
                    Trial{"oneItem", image_model(32, 2, 8), {1, 1, 6, 1}},
                    Trial{"llamaPack", test::tiny_language_model("llama", false), documents({3, 1, 5, 7})},
                    Trial{"qwenOneDocument", test::tiny_language_model("qwen2", true), documents({11})},
                    Trial{"oneToken", test::tiny_language_model("llama", true), documents({1})},
                    Trial{"dit", test::tiny_latent_model("dit"), {3, 4, 2, 0}},
                    Trial{"pixart", test::tiny_latent_model("pixart"), {2, 3, 5, 4}},
                    Trial{"sd3", test::tiny_latent_model("sd3"), {2, 4, 3, 6}},
                    Trial{"flux", test::tiny_latent_model("flux"), {3, 2, 5, 4}},
                    Trial{"autoencoder", test::tiny_autoencoder(), {2, 4, 6, 0}}),
    [](const auto& param) { return param.param.name; });

}  // namespace
}  // namespace chiliad::layers
