#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "chiliad/model/autoencoder/tiles.h"

namespace chiliad::model::autoencoder {
namespace {

at::Tensor picture(int64_t height, int64_t width) {
  return at::sin(at::arange(height * width, at::kFloat) * 0.37).view({1, 1, height, width});
}

TEST(SpansTest, CoverEverySideWithTheirOverlap) {
  for (int64_t length = 1; length < 60; ++length) {
    const auto spans = spans_of(length, 8, 3);
    EXPECT_EQ(spans.front().begin, 0);
    EXPECT_EQ(spans.back().begin + spans.back().length, length);
    for (size_t i = 1; i < spans.size(); ++i)
      EXPECT_GE(spans[i - 1].begin + spans[i - 1].length - spans[i].begin, 3) << length;
  }
}

TEST(BlendWeightsTest, AreOneTogether) {
  for (const int64_t length : {8, 9, 13, 17, 40}) {
    const auto spans = spans_of(length, 8, 4);
    at::Tensor sum = at::zeros({length * 2}, at::kFloat);
    const auto weights = blend_weights(spans, 4, 2);
    for (size_t i = 0; i < spans.size(); ++i)
      sum.narrow(0, spans[i].begin * 2, weights[i].size(0)).add_(weights[i]);
    EXPECT_TRUE(at::allclose(sum, at::ones_like(sum), 0.0, 1e-6)) << length;
  }
}

TEST(BlendWeightsTest, RiseAlongALine) {
  const auto weights = blend_weights({{0, 8}, {4, 8}}, 4, 1);
  EXPECT_TRUE(at::allclose(weights[1].narrow(0, 0, 4), (at::arange(4, at::kFloat) + 0.5) / 4.0));
}

TEST(RunTiledTest, FunctionsOfOneValueAreUntouched) {
  const at::Tensor x = picture(19, 23);
  const auto up = [](const at::Tensor& part) {
    return at::upsample_nearest2d(part.square(), {2 * part.size(2), 2 * part.size(3)});
  };
  EXPECT_TRUE(at::allclose(run_tiled({8, 3, 1, 2}, x, up), up(x), 0.0, 1e-6));
}

TEST(RunTiledTest, NeighbourhoodsDifferAtSeamsAlone) {
  const at::Tensor x = picture(16, 13);
  const auto blur = [](const at::Tensor& part) {
    return at::conv2d(part, at::ones({1, 1, 3, 3}, at::kFloat), {}, 1, 1);
  };
  const at::Tensor difference = (run_tiled({10, 4, 1, 1}, x, blur) - blur(x)).abs();
  // Tiles of rows 0..9 and 6..15: only their last and first row lack a neighbour.
  EXPECT_LT(difference.narrow(2, 0, 6).narrow(3, 0, 3).max().item<float>(), 1e-6F);
  EXPECT_LT(difference.narrow(2, 7, 2).narrow(3, 0, 3).max().item<float>(), 1e-6F);
  EXPECT_GT(difference[0][0][9].max().item<float>(), 1e-3F);
}

TEST(RunTiledTest, NoTileIsLargerThanAsked) {
  int64_t largest = 0;
  const auto watch = [&](const at::Tensor& part) {
    largest = std::max({largest, part.size(2), part.size(3)});
    return part;
  };
  (void)run_tiled({6, 2, 1, 1}, picture(31, 50), watch);
  EXPECT_EQ(largest, 6);
}

}  // namespace
}  // namespace chiliad::model::autoencoder
