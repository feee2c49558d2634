#include "chiliad/objective/feature_loss.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/api/module.h>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"
#include "chiliad/objective/autoencoder.h"
#include "chiliad/ops/backward.h"
#include "tests/support/temp_dir.h"

namespace chiliad::objective {
namespace {

std::string save_network(const test::TempDir& folder, const std::string& forward) {
  torch::jit::Module module("network");
  module.register_parameter("scale", at::full({1}, 3.0), false);
  module.define(forward);
  const std::string path = (folder.path() / "network.pt").string();
  module.save(path);
  return path;
}

constexpr const char* kTwoMaps =
    "def forward(self, x):\n    return [self.scale * x.mean(1), x[:, :, 0, :]]\n";

at::Tensor wave(double frequency) {
  return at::sin(at::arange(2 * 3 * 4 * 6, at::kFloat) * frequency).view({2, 3, 4, 6});
}

at::Tensor squared_mean(const at::Tensor& x) {
  return x.square().flatten(1).mean(1);
}

TEST(FeatureNetworkTest, SumsTheErrorsOfItsMaps) {
  const test::TempDir folder;
  const FeatureNetwork network(save_network(folder, kTwoMaps));
  const at::Tensor made = wave(0.7);
  const at::Tensor wanted = wave(0.9);
  const at::Tensor difference = made - wanted;
  const at::Tensor expected = squared_mean(difference.mean(1) * 3.0) + squared_mean(difference.select(2, 0));
  EXPECT_TRUE(at::allclose(network.losses(made, wanted), expected, 1e-5, 1e-7));
}

TEST(FeatureNetworkTest, GivesGradientsToTheReconstructionAlone) {
  const test::TempDir folder;
  const FeatureNetwork network(save_network(folder, kTwoMaps));
  at::Tensor made = wave(0.7).set_requires_grad(true);
  const at::Tensor wanted = wave(0.9).set_requires_grad(true);
  ops::backward({network.losses(made, wanted).sum()});
  const at::Tensor difference = made.detach() - wanted.detach();
  // d/dx of mean((3 mean_c d)^2) over 24 values, and of mean(d^2) over 18 in the first row.
  at::Tensor expected =
      (difference.mean(1, true) * (2.0 * 9.0 / 24.0 / 3.0)).expand({2, 3, 4, 6}).contiguous();
  expected.select(2, 0).add_(difference.select(2, 0) * (2.0 / 18.0));
  EXPECT_TRUE(at::allclose(made.grad(), expected, 1e-4, 1e-6));
  EXPECT_FALSE(wanted.grad().defined());
}

TEST(FeatureNetworkTest, IsPartOfTheAutoencodersLoss) {
  const test::TempDir folder;
  const FeatureNetwork network(save_network(folder, kTwoMaps));
  const at::Tensor pixels = wave(0.9);
  const AutoencoderOutput output{wave(0.7), at::zeros({2, 4, 2, 3}), at::zeros({2, 4, 2, 3})};
  const auto plain = autoencoder_losses({}, output, pixels);
  const auto seen = autoencoder_losses({.features = &network, .feature_weight = 0.25}, output, pixels);
  EXPECT_TRUE(at::allclose(seen.total, plain.total + network.losses(output.reconstruction, pixels) * 0.25));
}

TEST(FeatureNetworkTest, RefusesAFileThatIsNone) {
  const test::TempDir folder;
  const auto path = folder.path() / "other.pt";
  io::write_atomic(path, "not a network");
  EXPECT_THROW(FeatureNetwork(path.string()), InvalidInput);
  EXPECT_THROW(FeatureNetwork((folder.path() / "missing.pt").string()), InvalidInput);
}

TEST(FeatureNetworkTest, RefusesANetworkWithoutFeatures) {
  const test::TempDir folder;
  const FeatureNetwork network(save_network(folder, "def forward(self, x):\n    return 3\n"));
  EXPECT_THROW(static_cast<void>(network.losses(wave(0.7), wave(0.9))), InvalidInput);
}

TEST(FeatureNetworkTest, RefusesANetworkThatCannotTakeThePictures) {
  const test::TempDir folder;
  const FeatureNetwork network(
      save_network(folder, "def forward(self, x):\n    return x.view([1, 7, 5, 11])\n"));
  EXPECT_THROW(static_cast<void>(network.losses(wave(0.7), wave(0.9))), InvalidInput);
}

}  // namespace
}  // namespace chiliad::objective
