#include "chiliad/objective/autoencoder.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "chiliad/ops/backward.h"

namespace chiliad::objective {
namespace {

at::Tensor wave(const std::vector<int64_t>& sizes, double frequency) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return at::sin(at::arange(count, at::kDouble) * frequency + 0.3).view(sizes);
}

AutoencoderOutput output() {
  return {wave({2, 3, 4, 6}, 0.7), wave({2, 4, 2, 3}, 0.9), wave({2, 4, 2, 3}, 1.3)};
}

TEST(LatentDivergenceTest, IsZeroForTheStandardNormal) {
  const at::Tensor zeros = at::zeros({1, 2, 3, 3}, at::kDouble);
  EXPECT_EQ(latent_divergence(zeros, zeros).item<double>(), 0.0);
}

TEST(LatentDivergenceTest, IsTheFormulaSummedOverAnItem) {
  const at::Tensor mean = at::full({1, 2, 3, 3}, 1.5, at::kDouble);
  const at::Tensor logvar = at::full({1, 2, 3, 3}, -0.4, at::kDouble);
  const double each = 0.5 * (1.5 * 1.5 + std::exp(-0.4) - 1.0 + 0.4);
  EXPECT_NEAR(latent_divergence(mean, logvar).item<double>(), 18 * each, 1e-12);
}

TEST(AutoencoderLossesTest, AbsoluteIsTheMeanOverThePicture) {
  const at::Tensor pixels = at::zeros({2, 3, 4, 6}, at::kDouble);
  auto given = output();
  given.reconstruction = pixels - 0.25;
  const auto losses = autoencoder_losses({.kl_weight = 0.0}, given, pixels);
  EXPECT_NEAR(losses.total[0].item<double>(), 0.25, 1e-15);
  EXPECT_EQ(losses.total.size(0), 2);
}

TEST(AutoencoderLossesTest, SquaredIsTheMeanOverThePicture) {
  const at::Tensor pixels = at::zeros({2, 3, 4, 6}, at::kDouble);
  auto given = output();
  given.reconstruction = pixels - 0.25;
  const auto losses =
      autoencoder_losses({.error = ReconstructionError::kSquared, .kl_weight = 0.0}, given, pixels);
  EXPECT_NEAR(losses.total[1].item<double>(), 0.0625, 1e-15);
}

TEST(AutoencoderLossesTest, DivergenceIsWeightedAsInLatentDiffusion) {
  const at::Tensor pixels = wave({2, 3, 4, 6}, 0.2);
  const auto losses = autoencoder_losses({.kl_weight = 0.3}, output(), pixels);
  const at::Tensor sums = (output().reconstruction - pixels).abs().sum({1, 2, 3}) + losses.kl * 0.3;
  EXPECT_TRUE(at::allclose(losses.total * 72.0, sums, 1e-12, 0.0));
}

TEST(AutoencoderLossesTest, GradientsAreTheSlopes) {
  const at::Tensor pixels = wave({2, 3, 4, 6}, 0.2);
  for (const auto error : {ReconstructionError::kAbsolute, ReconstructionError::kSquared}) {
    const AutoencoderLossOptions options{.error = error, .kl_weight = 2.0};
    const auto loss = [&](const std::vector<at::Tensor>& in) {
      return autoencoder_losses(options, {in[0], in[1], in[2]}, pixels).total.sum();
    };
    const auto start = output();
    std::vector<at::Tensor> leaves = {start.reconstruction, start.mean, start.logvar};
    for (auto& leaf : leaves) leaf.set_requires_grad(true);
    ops::backward({loss(leaves)});
    for (size_t k = 0; k < leaves.size(); ++k) {
      const at::NoGradGuard no_grad;
      auto beside = leaves;
      at::Tensor step = at::zeros_like(leaves[k]);
      step.view(-1)[7] = 1e-6;
      beside[k] = leaves[k] + step;
      const double above = loss(beside).item<double>();
      beside[k] = leaves[k] - step;
      EXPECT_NEAR(leaves[k].grad().view(-1)[7].item<double>(), (above - loss(beside).item<double>()) / 2e-6,
                  1e-8);
    }
  }
}

TEST(ToPixelsTest, PutsChannelsFirstFromMinusOneToOne) {
  at::Tensor pictures = at::zeros({1, 2, 3, 3}, at::kByte);
  pictures[0][1][2][1] = 255;
  const at::Tensor pixels = to_pixels(pictures);
  EXPECT_EQ(pixels.sizes(), (std::vector<int64_t>{1, 3, 2, 3}));
  EXPECT_EQ(pixels[0][1][1][2].item<float>(), 1.0F);
  EXPECT_EQ(pixels.sum().item<float>(), 1.0F - 17.0F);
}

TEST(DrawLatentNoiseTest, ItemsDependOnTheirKeysAlone) {
  const std::vector<uint64_t> keys = {5, 6};
  EXPECT_TRUE(at::equal(draw_latent_noise(keys, 4, 3, 2)[1],
                        draw_latent_noise(std::vector<uint64_t>{6}, 4, 3, 2)[0]));
}

}  // namespace
}  // namespace chiliad::objective
