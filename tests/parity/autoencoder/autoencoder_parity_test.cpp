// AutoencoderKL against values of diffusers: moments, samples, pixels, and gradients of the training loss.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "chiliad/model/autoencoder.h"
#include "chiliad/model/autoencoder/build.h"
#include "chiliad/model/load_weights.h"
#include "chiliad/objective/autoencoder.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/autoencoder.h"
#include "chiliad/weights/key_tables/autoencoder.h"
#include "tests/parity/training/golden.h"
#include "tests/support/kits.h"

namespace chiliad::model {
namespace {

namespace fs = std::filesystem;

using test::relative_difference;

/// The kit's tolerance: the reference computes in fp32. Gradients: of the model's largest.
constexpr double kTolerance = 1e-5;

using Tensors = std::map<std::string, at::Tensor>;

std::vector<std::vector<at::Tensor>> load(const fs::path& folder, const std::string& file = "") {
  const auto options = weights::read_autoencoder_config(folder / "config.json");
  return load_weights(spec::families::autoencoder_table(options), folder / file, weights::autoencoder_keys());
}

/// Gradients are not in the kit: those beside the tests, whatever kit is used.
fs::path own_golden() {
  return fs::path(CHILIAD_TEST_DATA) / "golden";
}

/// Differences appear in the test's report.
void expect_close(const char* what, const at::Tensor& actual, const at::Tensor& expected) {
  const double difference = relative_difference(actual, expected);
  EXPECT_LT(difference, kTolerance) << what;
  testing::Test::RecordProperty(what, std::to_string(difference * 1e9) + "e-9");
}

class AutoencoderParity : public testing::TestWithParam<std::string> {
 protected:
  AutoencoderParity()
      : golden_(test::read_golden(GetParam())),
        model_(Autoencoder::load(test::golden_kit() / GetParam(), AutoencoderPrecision::kFp32)) {}

  [[nodiscard]] const at::Tensor& expected(const char* name) const { return golden_.expected.at(name); }

  test::GoldenCase golden_;
  Autoencoder model_;
};

TEST_P(AutoencoderParity, DistributionsMatch) {
  const auto latents = model_.encode(golden_.inputs.at("pixels"));
  expect_close("mean", latents.mean, expected("mean"));
  expect_close("logvar", latents.logvar, expected("logvar"));
}

TEST_P(AutoencoderParity, SamplesInModelSpaceMatch) {
  const auto latents = model_.encode(golden_.inputs.at("pixels"));
  const at::Tensor sample = latents.mean + (latents.logvar * 0.5).exp() * golden_.inputs.at("noise");
  expect_close("scaled_sample", to_model_space(model_.options(), sample), expected("scaled_sample"));
}

TEST_P(AutoencoderParity, PixelsMatch) {
  expect_close("decoded", model_.decode(golden_.inputs.at("latents")), expected("decoded"));
}

TEST_P(AutoencoderParity, PixelsOfModelSpaceMatch) {
  const at::Tensor latents = from_model_space(model_.options(), golden_.inputs.at("latents"));
  expect_close("decoded_from_scaled", model_.decode(latents), expected("decoded_from_scaled"));
}

TEST_P(AutoencoderParity, AChangedWeightShows) {
  auto weights = load(test::golden_kit() / GetParam());
  for (auto& layer : weights) {
    for (auto& weight : layer) weight.view(-1)[0] += 0.1 * weight.abs().max().item<float>() + 0.01F;
  }
  const Autoencoder changed(model_.options(), weights, AutoencoderPrecision::kFp32);
  EXPECT_GT(relative_difference(changed.encode(golden_.inputs.at("pixels")).mean, expected("mean")), 1e-3);
  EXPECT_GT(relative_difference(changed.decode(golden_.inputs.at("latents")), expected("decoded")), 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Kit, AutoencoderParity, testing::Values("vae_sd", "vae_flux"), [](const auto& test) {
  return test.param == "vae_sd" ? "WithQuantConvolutions" : "WithoutQuantConvolutions";
});

struct GradientCase {
  const char* folder;
  const char* file;
  objective::ReconstructionError error;
};

class AutoencoderGradients : public testing::TestWithParam<GradientCase> {
 protected:
  AutoencoderGradients() {
    const fs::path folder = own_golden() / GetParam().folder;
    inputs_ = test::read_golden_tensors(folder / "inputs.safetensors");
    expected_ = test::read_golden_tensors(folder / GetParam().file);
    options_ = weights::read_autoencoder_config(folder / "config.json");
    layers_ = autoencoder::build_autoencoder(options_);
    auto weights = load(folder);
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (auto& weight : weights[i]) weight.set_requires_grad(true);
      layers_[i]->bind(std::move(weights[i]));
    }
  }

  /// Each layer as its own segment, as in training; then the loss, whose gradients are left in gradients_.
  objective::AutoencoderLosses forward() {
    layers::Carry carry;
    carry.set("pixels", inputs_.at("pixels"));
    carry.set("noise", inputs_.at("noise"));
    for (const auto& layer : layers_) segments_.push_back(parallel::run_forward(*layer, carry));
    objective::AutoencoderOutput output;
    const auto leaf = [&](const char* name) { return carry.get(name).detach().set_requires_grad(true); };
    output.reconstruction = leaf("reconstruction");
    output.mean = leaf("mean");
    output.logvar = leaf("logvar");
    auto losses = objective::autoencoder_losses({.error = GetParam().error, .kl_weight = 0.1}, output,
                                                inputs_.at("pixels"));
    losses.total.mean().backward();
    gradients_.set("reconstruction", output.reconstruction.grad());
    gradients_.set("mean", output.mean.grad());
    gradients_.set("logvar", output.logvar.grad());
    return losses;
  }

  Tensors inputs_;
  Tensors expected_;
  spec::AutoencoderOptions options_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<parallel::Segment> segments_;
  layers::Carry gradients_;
};

TEST_P(AutoencoderGradients, EveryParameterIsOfTheCheckpoint) {
  size_t declared = 0;
  for (const auto& layer : layers_) declared += layer->params().size();
  size_t expected = 0;
  for (const auto& [name, value] : expected_) expected += name.starts_with("grad.") ? 1 : 0;
  EXPECT_EQ(declared, expected);
}

TEST_P(AutoencoderGradients, ItemLossesMatch) {
  expect_close("item_losses", forward().total, expected_.at("item_losses"));
}

TEST_P(AutoencoderGradients, EveryGradientMatches) {
  (void)forward();
  for (; !segments_.empty(); segments_.pop_back())
    parallel::run_backward(std::move(segments_.back()), gradients_);
  double largest = 0.0;
  for (const auto& [name, value] : expected_) {
    if (name.starts_with("grad.")) largest = std::max(largest, value.abs().max().item<double>());
  }
  double worst = 0.0;
  for (const auto& layer : layers_) {
    for (size_t i = 0; i < layer->params().size(); ++i) {
      const std::string& name = layer->decl().params[i].name;
      const at::Tensor& actual = layer->params()[i].grad();
      ASSERT_TRUE(actual.defined()) << name;
      const double difference = (actual - expected_.at("grad." + name)).abs().max().item<double>() / largest;
      EXPECT_LT(difference, kTolerance) << name;
      worst = std::max(worst, difference);
    }
  }
  RecordProperty("gradients", std::to_string(worst * 1e9) + "e-9");
}

INSTANTIATE_TEST_SUITE_P(Cases, AutoencoderGradients,
                         testing::Values(GradientCase{"vae_sd", "gradients.safetensors",
                                                      objective::ReconstructionError::kAbsolute},
                                         GradientCase{"vae_three_stages", "expected.safetensors",
                                                      objective::ReconstructionError::kSquared}),
                         [](const auto& test) {
                           return test.index == 0 ? "TwoStagesAbsolute" : "ThreeStagesSquared";
                         });

TEST(OldAttentionNames, GiveTheSameWeights) {
  const auto old_file = test::golden_kit() / "vae_sd" / "old_attention_names.safetensors";
  if (!fs::exists(old_file)) GTEST_SKIP() << "only in the whole kit (CHILIAD_GOLDEN)";
  const auto now = load(old_file.parent_path(), "diffusion_pytorch_model.safetensors");
  const auto old = load(old_file.parent_path(), "old_attention_names.safetensors");
  for (size_t i = 0; i < now.size(); ++i) {
    for (size_t k = 0; k < now[i].size(); ++k) EXPECT_TRUE(at::equal(now[i][k], old[i][k]));
  }
}

}  // namespace
}  // namespace chiliad::model
