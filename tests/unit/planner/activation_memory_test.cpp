#include "chiliad/planner/activation_memory.h"

#include <gtest/gtest.h>

#include "chiliad/planner/detail/layer_tapes.h"

namespace chiliad::planner {
namespace {

spec::RunFile language_run(bool tied) {
  spec::RunFile file;
  file.model.family = "llama";
  file.model.width = 256;
  file.model.heads = 8;
  file.model.depth = 3;
  file.model.mlp_width = 640;
  file.model.vocabulary = 1024;
  file.model.tied = tied;
  file.data.mode = "pack";
  return file;
}

spec::BatchShape shape_of(const spec::RunFile& file) {
  return file.data.mode == "pack" ? spec::BatchShape{1, 0, 4096, 4096.0 * 1024.0}
                                  : spec::BatchShape{16, 64, 40};
}

ActivationMemory memory_of(spec::RunFile file, const std::string& recompute) {
  file.parallel.recompute = recompute;
  const auto table = spec::make_layer_table(file.model);
  return activation_memory(table, file, shape_of(file), uniform_modes(table, file.parallel));
}

class ActivationMemoryTest : public testing::TestWithParam<spec::RunFile> {};

TEST_P(ActivationMemoryTest, EachModeKeepsLess) {
  const auto none = memory_of(GetParam(), "none");
  const auto selective = memory_of(GetParam(), "selective");
  const auto layers = memory_of(GetParam(), "layers");
  EXPECT_LT(selective.kept, none.kept);
  EXPECT_LT(layers.kept, selective.kept);
  EXPECT_LT(selective.peak, none.peak);
  EXPECT_LT(layers.peak, selective.peak);
}

TEST_P(ActivationMemoryTest, PeakHoldsWhatIsKept) {
  for (const char* mode : {"none", "selective", "layers"}) {
    const auto memory = memory_of(GetParam(), mode);
    EXPECT_GT(memory.peak, memory.kept + memory.inputs) << mode;
  }
}

TEST_P(ActivationMemoryTest, TensorParallelRanksHaveLess) {
  auto file = GetParam();
  file.parallel.tp = 2;
  EXPECT_LT(memory_of(file, "none").kept, memory_of(GetParam(), "none").kept);
}

TEST_P(ActivationMemoryTest, FrozenLayersBelowKeepNothing) {
  auto file = GetParam();
  file.optimizer.frozen = {file.data.mode == "pack" ? "backbone" : "text_encoder"};
  if (file.data.mode == "pack") file.optimizer.frozen.emplace_back("embedding");
  EXPECT_LT(memory_of(file, "none").kept, memory_of(GetParam(), "none").kept);
}

INSTANTIATE_TEST_SUITE_P(Families, ActivationMemoryTest,
                         testing::Values(spec::RunFile(), language_run(false), language_run(true)),
                         [](const auto& given) {
                           return given.param.model.family + (given.param.model.tied ? "Tied" : "");
                         });

spec::RunFile latent_run(const std::string& family) {
  spec::RunFile file;
  file.model.family = family;
  file.model.width = 96;
  file.model.classes = 10;
  file.model.text_channels = file.model.pooled_channels = 32;
  file.model.size_conditions = family == "pixart";
  file.model.dual_attention_layers = {1};
  file.model.single_depth = 2;
  file.model.rope_axes = {8, 8, 8};
  return file;
}

spec::RunFile autoencoder_run() {
  spec::RunFile file;
  file.model.family = "autoencoder";
  file.model.stage_channels = {16, 32};
  file.model.norm_groups = 8;
  return file;
}

TEST(LayerTapesTest, EveryKindOfAFamilyHasOne) {
  for (const auto& file : {spec::RunFile(), language_run(false), latent_run("dit"), latent_run("pixart"),
                           latent_run("sd3"), latent_run("flux"), autoencoder_run()}) {
    for (const auto& layer : spec::make_layer_table(file.model).layers) {
      ASSERT_TRUE(detail::has_tape(layer)) << layer.name;
      const auto memory = detail::layer_memory(layer, {.shape = shape_of(file)});
      EXPECT_GT(memory.none.forward, 0) << layer.name;
      EXPECT_EQ(memory.outputs.size(), layer.writes.size()) << layer.name;
      EXPECT_EQ(memory.input_gradients.size(), layer.reads.size()) << layer.name;
    }
  }
}

TEST(LayerTapesTest, HalfPrecisionHalvesActivations) {
  const auto table = spec::make_layer_table({});
  const auto& block = table.layers[table.layers.size() - 2];
  const detail::TapeSetup whole{.shape = {16, 64, 40}};
  detail::TapeSetup half = whole;
  half.value_bytes = 2;
  const double ratio = static_cast<double>(detail::layer_memory(block, half).none.kept) /
                       static_cast<double>(detail::layer_memory(block, whole).none.kept);
  EXPECT_NEAR(ratio, 0.5, 0.02);  // statistics stay fp32
}

}  // namespace
}  // namespace chiliad::planner
