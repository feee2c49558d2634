#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "chiliad/device/memory_meter.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/parallel/segment.h"
#include "chiliad/planner/detail/layer_tapes.h"
#include "tests/contract/layers/model_fixture.h"

namespace chiliad::parallel {
namespace {

using planner::detail::LayerMemory;
using spec::Recompute;

struct Trial {
  const char* name;
  spec::ModelOptions options;
  test::TrialShape shape;
};

class LayerMemoryTest : public testing::TestWithParam<Trial> {};

/// What the meter found of one layer.
struct Measured {
  LayerMemory::Mode mode;
  int64_t outputs = 0;
};

void open_gradients(const layers::Layer& layer) {
  for (const auto& param : layer.params()) param.mutable_grad() = at::zeros_like(param);
}

Measured measure(const layers::Layer& layer, const layers::Carry& carry, Recompute recompute,
                 device::MemoryMeter& meter) {
  Measured found;
  layers::Carry local = carry;
  int64_t before = meter.live_bytes();
  meter.reset_peak();
  Segment segment = run_forward(layer, local, {.recompute = recompute});
  found.mode.forward = meter.peak_bytes() - before;
  found.mode.kept = meter.live_bytes() - before;
  layers::Carry gradients;
  for (const auto& name : layer.decl().writes) {
    if (name != "token_losses") gradients.set(name, at::ones_like(local.get(name)));
  }
  local = {};
  before = meter.live_bytes();
  meter.reset_peak();
  run_backward(std::move(segment), gradients);
  found.mode.backward = meter.peak_bytes() - before;
  return found;
}

/// A twentieth, and what is small: statistics of a few rows, condition vectors, tables of positions.
const double kTolerance = ops::cpu::has_kernels() ? 0.05 : 0.15;
/// Convolutions work in memory that the library chooses by the machine.
constexpr double kConvolutionTolerance = 0.1;

void expect_near(int64_t measured, int64_t predicted, double tolerance, const std::string& what) {
  EXPECT_NEAR(static_cast<double>(measured), static_cast<double>(predicted),
              tolerance * static_cast<double>(predicted) + 8192)
      << what;
}

/// On AMD libtorch's products and convolutions with few columns take memory that the tape does not know yet.
bool is_unpredicted_end(const std::string& layer) {
  if (!ops::cpu::takes_fp32()) return false;  // not AMD
  const std::array<const char*, 4> ends{"head", "proj_out", "conv_in", "conv_out"};
  return std::any_of(ends.begin(), ends.end(), [&](const char* end) { return layer.ends_with(end); });
}

TEST_P(LayerMemoryTest, IsWhatTheTapeSays) {
  const auto& [name, options, shape] = GetParam();
  const double work = spec::is_autoencoder(options) ? kConvolutionTolerance : kTolerance;
  device::MemoryMeter meter;
  const auto model = test::make_random_model(options, at::kFloat);
  layers::Carry carry = test::make_trial_input(options, shape, at::kFloat);
  for (const auto& layer : model) {
    open_gradients(*layer);
    const LayerMemory predicted =
        planner::detail::layer_memory(layer->decl(), {.shape = test::batch_shape(options, shape),
                                                      .tp = 1,
                                                      .threads = at::get_num_threads(),
                                                      .trained = true});
    constexpr std::array<const char*, 3> kNames{"none", "selective", "layers"};
    for (const auto recompute : {Recompute::kNone, Recompute::kSelective, Recompute::kLayers}) {
      if (layer == model.back() && recompute != Recompute::kNone) break;  // it keeps all
      const auto found = measure(*layer, carry, recompute, meter);
      const auto& mode = predicted.of(recompute);
      const std::string what = layer->decl().name + ", " + kNames[static_cast<size_t>(recompute)] + ": ";
      expect_near(found.mode.kept, mode.kept + predicted.all_outputs(), kTolerance, what + "kept");
      if (is_unpredicted_end(layer->decl().name)) continue;
      expect_near(found.mode.forward, mode.forward, work, what + "forward");
      expect_near(found.mode.backward, mode.backward, work, what + "backward");
    }
    static_cast<void>(run_forward(*layer, carry, {.needs_backward = false}));
  }
}

spec::ModelOptions pictures(int64_t width, int64_t heads) {
  spec::ModelOptions options = test::tiny_model();
  options.width = width;
  options.heads = heads;
  options.mlp_ratio = 4;
  return options;
}

spec::ModelOptions documents(bool tied) {
  spec::ModelOptions options = test::tiny_language_model(tied ? "qwen2" : "llama", tied);
  options.width = 96;
  options.heads = 6;
  options.kv_heads = 2;
  options.head_size = 16;
  options.mlp_width = 240;
  options.vocabulary = 512;
  return options;
}

spec::ModelOptions latents(const std::string& family, int64_t width, int64_t heads) {
  spec::ModelOptions options = test::tiny_latent_model(family);
  options.width = width;
  options.heads = heads;
  if (options.text_channels > 0) options.text_channels = 48;
  const int64_t axis = width / heads / 4;
  options.rope_axes = {2 * axis, axis, axis};
  return options;
}

spec::ModelOptions autoencoder(bool attention) {
  spec::ModelOptions options = test::tiny_autoencoder();
  options.stage_channels = {16, 32, 32};
  options.layers_per_stage = 2;
  options.middle_attention = attention;
  return options;
}

INSTANTIATE_TEST_SUITE_P(Sizes, LayerMemoryTest,
                         testing::Values(Trial{"pictures", pictures(64, 4), {4, 8, 8, 24, {}}},
                                         Trial{"widePictures", pictures(192, 3), {2, 12, 16, 40, {}}},
                                         Trial{"llamaPack", documents(false), {0, 0, 0, 0, {100, 80, 140}}},
                                         Trial{"llamaOneDocument", documents(false), {0, 0, 0, 0, {300}}},
                                         Trial{"qwenPack", documents(true), {0, 0, 0, 0, {100, 80, 140}}},
                                         Trial{"qwenOneDocument", documents(true), {0, 0, 0, 0, {300}}},
                                         Trial{"dit", latents("dit", 64, 4), {4, 8, 8, 0, {}}},
                                         Trial{"ditOneItem", latents("dit", 96, 3), {1, 16, 12, 0, {}}},
                                         Trial{"pixart", latents("pixart", 48, 4), {4, 8, 8, 24, {}}},
                                         Trial{"widePixart", latents("pixart", 192, 3), {2, 12, 16, 40, {}}},
                                         Trial{"sd3", latents("sd3", 64, 4), {4, 8, 8, 24, {}}},
                                         Trial{"sd3OneItem", latents("sd3", 96, 3), {1, 14, 12, 40, {}}},
                                         Trial{"flux", latents("flux", 64, 4), {4, 8, 8, 24, {}}},
                                         Trial{"fluxOneItem", latents("flux", 192, 3), {1, 14, 12, 40, {}}},
                                         Trial{"autoencoder", autoencoder(true), {3, 8, 6, 0, {}}},
                                         Trial{"autoencoderPlain", autoencoder(false), {2, 8, 8, 0, {}}}),
                         [](const auto& given) { return given.param.name; });

}  // namespace
}  // namespace chiliad::parallel
