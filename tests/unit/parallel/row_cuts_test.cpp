#include "chiliad/parallel/row_cuts.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace chiliad::parallel {
namespace {

spec::ModelOptions small_model() {
  spec::ModelOptions options;
  options.width = 16;
  options.depth = 1;
  options.heads = 2;
  options.patch = 2;
  return options;
}

/// Layers of a model, and one that has fewer rows than most tests have ranks.
std::vector<spec::LayerDecl> trial_layers() {
  auto layers = spec::make_layer_table(small_model()).layers;
  spec::LayerDecl few{};
  few.name = "few";
  few.params = {{"few.weight", Shape{2, 50}}, {"few.bias", Shape{1}}};
  layers.push_back(few);
  return layers;
}

class RowCuts : public testing::TestWithParam<int> {};

TEST_P(RowCuts, CoverTheBufferInOrder) {
  for (const auto& layer : trial_layers()) {
    const auto cuts = cut_at_rows(layer, GetParam());
    ASSERT_EQ(static_cast<int>(cuts.size()), GetParam() + 1) << layer.name;
    EXPECT_EQ(cuts.front(), 0) << layer.name;
    EXPECT_EQ(cuts.back(), layer.num_params()) << layer.name;
    EXPECT_TRUE(std::is_sorted(cuts.begin(), cuts.end())) << layer.name;
  }
}

TEST_P(RowCuts, LieAtRowBorders) {
  for (const auto& layer : trial_layers()) {
    for (const int64_t cut : cut_at_rows(layer, GetParam())) {
      int64_t begin = 0;
      for (const auto& param : layer.params) {
        const int64_t count = param.shape.count();
        const int64_t row = param.shape.rank() < 2 ? 1 : count / param.shape[0];
        if (cut > begin && cut < begin + count) {
          EXPECT_EQ((cut - begin) % row, 0) << param.name << " cut " << cut;
        }
        begin += count;
      }
    }
  }
}

TEST_P(RowCuts, AreEvenUpToOneRow) {
  for (const auto& layer : trial_layers()) {
    int64_t longest_row = 1;
    for (const auto& param : layer.params) {
      if (param.shape.rank() > 1) longest_row = std::max(longest_row, param.shape.count() / param.shape[0]);
    }
    const auto cuts = cut_at_rows(layer, GetParam());
    for (size_t rank = 0; rank + 1 < cuts.size(); ++rank) {
      EXPECT_LE(cuts[rank + 1] - cuts[rank], layer.num_params() / GetParam() + 1 + longest_row) << layer.name;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, RowCuts, testing::Range(1, 8));

}  // namespace
}  // namespace chiliad::parallel
