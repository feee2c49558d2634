// DiT, PixArt, SD3 and Flux against values of diffusers: every block, the output, the loss and every
// gradient.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "chiliad/model/diffusion.h"
#include "chiliad/ops/patches.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/diffusion.h"
#include "chiliad/weights/key_tables/diffusion.h"
#include "chiliad/weights/weight_source.h"
#include "tests/parity/training/golden.h"
#include "tests/support/kits.h"

namespace chiliad::model {
namespace {

using test::GoldenCase;
using test::relative_difference;

/// The exponential of MKL differs by one unit in the last place between processors, and the time features
/// multiply that by up to 1000. In this mode it has the same bits everywhere, those of the kit.
const bool kSameBitsEverywhere = ::setenv("MKL_CBWR", "COMPATIBLE", 0) == 0;

/// The kit's tolerance, for outputs and gradients: the reference computes in fp32.
constexpr double kTolerance = 1e-5;

/// Flux files have packed latents; ours are pictures.
at::Tensor as_latents(const spec::DiffusionOptions& options, const GoldenCase& golden,
                      const at::Tensor& value) {
  if (options.family != "flux") return value;
  const at::Tensor last = std::get<0>(golden.inputs.at("img_ids").max(0)).to(at::kLong) + 1;
  return ops::image_of(value, last[1].item<int64_t>(), last[2].item<int64_t>(), options.patch,
                       ops::PatchOrder::kChannelFirst);
}

LatentBatch make_batch(const spec::DiffusionOptions& options, const GoldenCase& golden) {
  const auto input = [&](const char* name) {
    const auto found = golden.inputs.find(name);
    return found == golden.inputs.end() ? at::Tensor() : found->second;
  };
  LatentBatch batch;
  batch.latents = as_latents(options, golden, input("hidden_states"));
  batch.time = input("timestep").to(at::kFloat) * (options.family == "flux" ? 1000.0 : 1.0);
  batch.labels = input("class_labels");
  batch.text = input("encoder_hidden_states");
  if (input("encoder_attention_mask").defined()) batch.text_mask = input("encoder_attention_mask").ne(0);
  batch.pooled = input("pooled_projections");
  batch.guidance = input("guidance");
  batch.resolution = input("resolution");
  batch.aspect_ratio = input("aspect_ratio");
  return batch;
}

class DiffusionParity : public testing::TestWithParam<std::string> {
 protected:
  DiffusionParity()
      : golden_(test::read_golden(GetParam())),
        options_(weights::read_diffusion_config(test::golden_kit() / GetParam() / "config.json")),
        layers_(build_diffusion(options_)) {
    const auto params = load_diffusion_weights(options_, test::golden_kit() / GetParam());
    for (size_t i = 0; i < layers_.size(); ++i) {
      for (const auto& param : params[i]) param.set_requires_grad(true);
      layers_[i]->bind(params[i]);
    }
  }

  /// Runs all layers, each as its own segment; keeps what each gave to the next.
  void forward(spec::Recompute recompute = spec::Recompute::kNone) {
    ASSERT_TRUE(kSameBitsEverywhere);
    after_.clear();
    layers::Carry carry = make_diffusion_input(options_, make_batch(options_, golden_));
    for (const auto& layer : layers_) {
      segments_.push_back(parallel::run_forward(*layer, carry, {.recompute = recompute}));
      after_.push_back(carry);
    }
    prediction_ = carry.get("prediction");
  }

  void backward() {
    layers::Carry gradients;
    gradients.set("prediction", (prediction_ - target()) * (2.0 / static_cast<double>(prediction_.numel())));
    for (; !segments_.empty(); segments_.pop_back())
      parallel::run_backward(std::move(segments_.back()), gradients);
  }

  /// The gradients of all parameters of a step, which are then gone.
  std::vector<at::Tensor> take_gradients(spec::Recompute recompute) {
    forward(recompute);
    backward();
    std::vector<at::Tensor> taken;
    for (const auto& layer : layers_) {
      for (const auto& param : layer->params()) {
        taken.push_back(param.grad());
        param.mutable_grad() = at::Tensor();
      }
    }
    return taken;
  }

  [[nodiscard]] at::Tensor target() const {
    return as_latents(options_, golden_, golden_.inputs.at("target"));
  }

  GoldenCase golden_;
  spec::DiffusionOptions options_;
  std::vector<std::unique_ptr<layers::Layer>> layers_;
  std::vector<parallel::Segment> segments_;
  std::vector<layers::Carry> after_;
  at::Tensor prediction_;
};

TEST_P(DiffusionParity, EveryBlockMatches) {
  forward();
  size_t found = 0;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::string& name = layers_[i]->decl().name;
    for (const auto& [suffix, entry] :
         {std::pair{"", "image"}, std::pair{".image", "image"}, std::pair{".text", "text"}}) {
      const auto expected = golden_.expected.find(name + suffix);
      if (expected == golden_.expected.end()) continue;
      const double difference = relative_difference(after_[i].get(entry), expected->second);
      EXPECT_LT(difference, kTolerance) << name << suffix;
      RecordProperty(name + suffix, std::to_string(difference * 1e9) + "e-9");
      ++found;
    }
  }
  EXPECT_GE(found, static_cast<size_t>(options_.depth + options_.single_depth));
}

TEST_P(DiffusionParity, PredictionMatches) {
  forward();
  const double difference =
      relative_difference(prediction_, as_latents(options_, golden_, golden_.expected.at("sample")));
  EXPECT_LT(difference, kTolerance);
  RecordProperty("sample", std::to_string(difference * 1e9) + "e-9");
  EXPECT_LT(relative_difference(at::mse_loss(prediction_, target()), golden_.expected.at("loss")),
            kTolerance);
}

TEST_P(DiffusionParity, EveryGradientMatches) {
  forward();
  backward();
  double largest = 0.0;
  for (const auto& [name, value] : golden_.expected) {
    if (name.starts_with("grad.")) largest = std::max(largest, value.abs().max().item<double>());
  }
  const std::string shared = "transformer_blocks.0.norm1.emb.";
  double worst = 0.0;
  for (const auto& layer : layers_) {
    for (size_t i = 0; i < layer->params().size(); ++i) {
      const std::string& name = layer->decl().params[i].name;
      if (layer->decl().kind == spec::LayerKind::kSd3Positions) continue;  // a buffer in the reference
      const bool is_shared = options_.family == "dit" && name.starts_with(shared);
      const std::string key = is_shared ? "shared_grad." + name.substr(shared.size()) : "grad." + name;
      const at::Tensor& actual = layer->params()[i].grad();
      ASSERT_TRUE(actual.defined()) << name;
      const double difference = (actual - golden_.expected.at(key)).abs().max().item<double>() / largest;
      EXPECT_LT(difference, kTolerance) << name;
      worst = std::max(worst, difference);
    }
  }
  RecordProperty("gradients", std::to_string(worst * 1e9) + "e-9");
}

TEST_P(DiffusionParity, RecomputationGivesTheSameBits) {
  const auto kept = take_gradients(spec::Recompute::kNone);
  for (const auto recompute : {spec::Recompute::kSelective, spec::Recompute::kLayers}) {
    const auto made = take_gradients(recompute);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(made[i].equal(kept[i])) << i;
  }
}

TEST_P(DiffusionParity, AChangedWeightShows) {
  for (const auto& layer : layers_) {
    if (layer->decl().component != "backbone") continue;
    const at::NoGradGuard no_grad;
    for (const auto& param : layer->params()) param.mul_(1.01);
  }
  forward();
  EXPECT_GT(relative_difference(prediction_, as_latents(options_, golden_, golden_.expected.at("sample"))),
            kTolerance);
}

TEST_P(DiffusionParity, ExportedKeysAreThoseOfTheFile) {
  std::multiset<std::string> ours;
  for (const auto& layer : layers_) {
    for (const auto& param : layer->decl().params) {
      for (const auto& key : weights::diffusers_keys_of(options_, param.name)) ours.insert(key);
    }
  }
  std::multiset<std::string> theirs;
  for (const auto& tensor : weights::WeightSource::open(test::golden_kit() / GetParam()).tensors())
    theirs.insert(tensor.name);
  EXPECT_EQ(ours, theirs);
}

TEST_P(DiffusionParity, ConfigSurvivesWriting) {
  const auto again = weights::parse_diffusion_config(weights::write_diffusion_config(options_), "config");
  EXPECT_EQ(weights::write_diffusion_config(again), weights::write_diffusion_config(options_));
}

INSTANTIATE_TEST_SUITE_P(Kit, DiffusionParity,
                         testing::Values("dit", "pixart_sigma", "pixart_alpha_1024", "sd3",
                                         "sd3_dual_attention", "flux", "flux_guidance"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::erase(name, '_');
                           return name;
                         });

}  // namespace
}  // namespace chiliad::model
