#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "chiliad/ops/backward.h"
#include "chiliad/ops/convolution.h"
#include "chiliad/ops/group_norm.h"
#include "chiliad/ops/keyed_noise.h"

namespace chiliad::ops {
namespace {

using Function = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency, at::ScalarType type = at::kDouble) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency + 0.1).view(sizes).to(type);
}

/// By the definition: mean and variance of a group's channels and positions.
at::Tensor reference_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                          const at::Tensor& bias, double eps) {
  const at::Tensor rows = x.reshape({x.size(0), groups, -1});
  const at::Tensor centred = rows - rows.mean({2}, true);
  const at::Tensor normed = (centred / (centred.square().mean({2}, true) + eps).sqrt()).view(x.sizes());
  return normed * weight.view({1, -1, 1, 1}) + bias.view({1, -1, 1, 1});
}

at::Tensor plain_silu(const at::Tensor& x) {
  return x / (1.0 + (-x).exp());
}

/// The value first, then the gradients under an uneven functional.
std::vector<at::Tensor> run(const Function& function, const std::vector<at::Tensor>& inputs) {
  std::vector<at::Tensor> leaves;
  for (const auto& input : inputs) leaves.push_back(input.detach().clone().set_requires_grad(true));
  const at::Tensor out = function(leaves);
  backward({(out * at::cos(at::arange(out.numel(), at::kDouble) * 1.7).view(out.sizes())).sum()}, {});
  std::vector<at::Tensor> found{out.detach()};
  for (const auto& leaf : leaves) found.push_back(leaf.grad());
  return found;
}

TEST(GroupNormSiluTest, ValuesAndGradientsAreThoseOfTheDefinition) {
  const std::vector<at::Tensor> inputs = {wave({2, 6, 3, 5}, 0.7) * 2.0, wave({6}, 0.3), wave({6}, 1.1)};
  const auto actual =
      run([](const auto& in) { return group_norm_silu(in[0], 3, in[1], in[2], 1e-3); }, inputs);
  const auto expected =
      run([](const auto& in) { return plain_silu(reference_norm(in[0], 3, in[1], in[2], 1e-3)); }, inputs);
  for (size_t i = 0; i < actual.size(); ++i)
    EXPECT_TRUE(at::allclose(actual[i], expected[i], 1e-9, 1e-11)) << i;
}

TEST(GroupNormSiluTest, GradientIsTheSlope) {
  const at::Tensor x = wave({1, 4, 2, 3}, 0.9);
  const at::Tensor weight = wave({4}, 0.4);
  const at::Tensor bias = wave({4}, 2.0);
  const auto value = [&](const at::Tensor& at_x) { return group_norm_silu(at_x, 2, weight, bias, 1e-6); };
  const auto found = run([&](const auto& in) { return value(in[0]); }, {x});
  const at::Tensor uneven = at::cos(at::arange(x.numel(), at::kDouble) * 1.7).view(x.sizes());
  for (int64_t i = 0; i < x.numel(); ++i) {
    at::Tensor step = at::zeros_like(x);
    step.view(-1)[i] = 1e-5;
    const double slope = ((value(x + step) - value(x - step)) * uneven).sum().item<double>() / 2e-5;
    EXPECT_NEAR(found[1].view(-1)[i].item<double>(), slope, 1e-7) << i;
  }
}

/// A picture large enough for several strips, and a kernel with a row above and below.
struct LargePicture {
  at::Tensor x = wave({1, 8, 771, 1024}, 0.37, at::kFloat);
  GroupNormParams norm{4, wave({8}, 0.3, at::kFloat), wave({8}, 1.3, at::kFloat), 1e-6};
  at::Tensor kernel = wave({6, 8, 3, 3}, 0.77, at::kFloat);
  at::Tensor bias = wave({6}, 0.5, at::kFloat);
};

/// fp32 sums of 72 products in another order.
constexpr double kStripTolerance = 2e-5;

TEST(ConvolutionStripsTest, ConvolveIsThatOfTheWhole) {
  const LargePicture given;
  ASSERT_GT(given.x.numel(), kMostStripValues);
  const at::Tensor whole = convolve(given.x, given.kernel, given.bias);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(convolve(given.x, given.kernel, given.bias), whole, 0.0, kStripTolerance));
}

TEST(ConvolutionStripsTest, NormedIsThatOfTheWhole) {
  const LargePicture given;
  const at::Tensor whole = norm_silu_convolve(given.x, given.norm, given.kernel, given.bias);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::allclose(norm_silu_convolve(given.x, given.norm, given.kernel, given.bias), whole, 0.0,
                           kStripTolerance));
}

TEST(ConvolutionStripsTest, UpsampledIsThatOfTheWhole) {
  LargePicture given;
  given.x = given.x.narrow(2, 0, 385).contiguous();
  const at::Tensor whole = upsample_convolve(given.x, given.kernel, given.bias);
  EXPECT_EQ(whole.size(2), 770);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(
      at::allclose(upsample_convolve(given.x, given.kernel, given.bias), whole, 0.0, kStripTolerance));
}

TEST(KeyedNoiseTest, PurposesHaveTheirOwnStreams) {
  const std::vector<uint64_t> keys = {5, 6};
  const at::Tensor latent = keyed_noise(keys, Draw::kLatent, 7);
  EXPECT_TRUE(at::equal(latent[1], keyed_noise(std::vector<uint64_t>{6}, Draw::kLatent, 7)[0]));
  EXPECT_FALSE(at::equal(latent, keyed_noise(keys, Draw::kNoise, 7)));
}

}  // namespace
}  // namespace chiliad::ops
