#include "chiliad/spec/trained_work.h"

#include <gtest/gtest.h>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

const BatchShape kShape{2, 16, 8, 0.0};

LayerTable table() {
  return make_layer_table(ModelOptions());
}

TEST(TrainedWorkTest, OfAllLayersIsThatOfTheStep) {
  const auto layers = table();
  const std::vector<bool> all(layers.layers.size(), true);
  EXPECT_EQ(trained_work(layers, kShape, all).flops(), layers.step_work(kShape).flops());
}

TEST(TrainedWorkTest, OfNoLayerIsTheForward) {
  const auto layers = table();
  const std::vector<bool> none(layers.layers.size(), false);
  EXPECT_EQ(trained_work(layers, kShape, none).flops(), layers.step_work(kShape).flops() / 3.0);
}

TEST(TrainedWorkTest, LayersBelowTheFirstTrainedOneHaveNoBackward) {
  const auto layers = table();
  std::vector<bool> last(layers.layers.size(), false);
  last.back() = true;
  const double forward = layers.step_work(kShape).flops() / 3.0;
  EXPECT_EQ(trained_work(layers, kShape, last).flops(),
            forward + 2.0 * layers.layers.back().forward(kShape).flops());
}

TEST(TrainedWorkTest, AFrozenLayerAboveATrainedOneHasNoGradientsOfWeights) {
  const auto layers = table();
  std::vector<bool> all_but_last(layers.layers.size(), true);
  all_but_last.back() = false;
  EXPECT_EQ(trained_work(layers, kShape, all_but_last).flops(),
            layers.step_work(kShape).flops() - layers.layers.back().forward(kShape).linear_flops);
}

TEST(TrainedWorkTest, WantsAWordForEachLayer) {
  EXPECT_THROW((void)trained_work(table(), kShape, {true}), InternalError);
}

}  // namespace
}  // namespace chiliad::spec
