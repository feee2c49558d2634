// Work models are polynomials of the layer tables: the same numbers, much quicker.
#include "chiliad/stepplan/work_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "chiliad/spec/layer_table.h"

namespace chiliad::stepplan {
namespace {

constexpr spec::Rates kRates{4e14, 2e14, 1.5e12, 1e6};

spec::ModelOptions model_of(const std::string& family) {
  spec::ModelOptions model;
  model.family = family;
  if (family == "pixel_dit") return model;
  model.patch = 2;
  model.text_channels = 512;
  model.pooled_channels = 256;
  model.classes = family == "dit" ? 10 : 0;
  model.single_depth = family == "flux" ? 2 : 0;
  if (family == "flux") model.rope_axes = {16, 24, 24};
  if (family == "llama") {
    model.mlp_width = 512;
    model.vocabulary = 1000;
  }
  return model;
}

class WorkModelTest : public ::testing::TestWithParam<std::string> {};

TEST_P(WorkModelTest, IsWhatTheLayersSay) {
  const auto model = model_of(GetParam());
  const auto work = make_work_model(model, kRates);
  const auto table = spec::make_layer_table(model);
  const auto side = static_cast<int32_t>(spec::token_pixels(model));
  for (const Bucket tokens : {Bucket{1, 1}, Bucket{16, 16}, Bucket{40, 24}, Bucket{128, 96}}) {
    for (const int64_t items : {1, 5, 64}) {
      for (const int64_t text : {1, 20, 300}) {
        const double exact =
            kRates.seconds(table.step_work({items, int64_t{tokens.width} * tokens.height, text}));
        EXPECT_NEAR(work({tokens.width * side, tokens.height * side}, items, text), exact, 1e-8 * exact)
            << tokens.width << " x " << tokens.height << ", " << items << ", " << text;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Families, WorkModelTest,
                         ::testing::Values("pixel_dit", "dit", "pixart", "sd3", "flux", "autoencoder"));

TEST(RowWorkTest, IsWhatTheLayersSay) {
  const auto model = model_of("llama");
  const auto work = make_row_work(model, kRates);
  const auto table = spec::make_layer_table(model);
  for (const int64_t tokens : {1, 100, 4096}) {
    const double squares = static_cast<double>(tokens) * 37.0;
    const double exact = kRates.seconds(table.step_work({1, 0, tokens, squares}));
    EXPECT_NEAR(work(tokens, squares), exact, 1e-8 * exact);
  }
}

TEST(ComponentWorkTest, AddsUpToTheWhole) {
  const auto model = model_of("pixel_dit");
  EXPECT_THAT(balanced_components(model), ::testing::ElementsAre("text_encoder", "backbone"));
  const Works works = make_component_work(model, kRates)({64, 32}, 7, 50);
  const double whole = make_work_model(model, kRates)({64, 32}, 7, 50);
  EXPECT_GT(works[0], 0.0);
  EXPECT_NEAR(std::accumulate(works.begin(), works.end(), 0.0), whole, 1e-9 * whole);
}

TEST(ComponentWorkTest, ModelsWithoutATextEncoderHaveOne) {
  EXPECT_THAT(balanced_components(model_of("pixart")), ::testing::IsEmpty());
}

}  // namespace
}  // namespace chiliad::stepplan
