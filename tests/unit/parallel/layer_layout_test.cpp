#include "chiliad/parallel/layer_layout.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace chiliad::parallel {
namespace {

/// Rows and columns that six ranks divide, a fused matrix, a vector, and a matrix with fewer rows than most
/// meshes have ranks.
spec::LayerDecl trial_layer() {
  using spec::Init;
  using spec::Split;
  spec::LayerDecl layer{};
  layer.name = "trial";
  layer.params = {{"norm", Shape{7}, Init::kOne, false, Split::kNone, 1},
                  {"fused", Shape{36, 5}, Init::kZero, true, Split::kRows, 3},
                  {"fused.bias", Shape{36}, Init::kZero, false, Split::kRows, 3},
                  {"out", Shape{5, 12}, Init::kZero, true, Split::kColumns, 1},
                  {"few", Shape{2, 50}, Init::kZero, true, Split::kNone, 1}};
  return layer;
}

class LayoutTest : public testing::TestWithParam<MeshShape> {};

/// How often each value of each parameter is in a list of pieces.
using Counts = std::map<std::string, std::vector<int>>;

void count(const Piece& piece, Counts& counts) {
  const Shape& shape = piece.param->shape;
  auto& values = counts[piece.param->name];
  values.resize(static_cast<size_t>(shape.count()));
  const int64_t columns = shape.rank() == 1 ? 1 : shape[1];
  for (int64_t row = 0; row < piece.box.size[0]; ++row) {
    const int64_t width = shape.rank() == 1 ? 1 : piece.box.size[1];
    const int64_t first = shape.rank() == 1 ? 0 : piece.box.offset[1];
    for (int64_t column = 0; column < width; ++column) {
      ++values.at(static_cast<size_t>((piece.box.offset[0] + row) * columns + first + column));
    }
  }
}

TEST_P(LayoutTest, OwnedBoxesCoverEveryValueOnce) {
  const auto layer = trial_layer();
  Counts counts;
  for (int rank = 0; rank < GetParam().size(); ++rank) {
    const auto place = MeshPlace::of(rank, GetParam());
    const LayerLayout layout(layer, GetParam(), place);
    for (const auto& piece : layout.owned_pieces()) {
      EXPECT_EQ(piece.box.count(), piece.count) << piece.param->name;
      if (!piece.replicated || place.tp == 0) count(piece, counts);
    }
  }
  for (const auto& [name, values] : counts) EXPECT_EQ(values, std::vector<int>(values.size(), 1)) << name;
}

TEST_P(LayoutTest, ShardIsTheOwnedRunsOfItsReplicas) {
  const auto layer = trial_layer();
  for (int rank = 0; rank < GetParam().size(); ++rank) {
    const LayerLayout layout(layer, GetParam(), MeshPlace::of(rank, GetParam()));
    int64_t owned = 0;
    for (const int64_t size : layout.owned_sizes()) owned += size;
    EXPECT_EQ(owned, layout.shard_size());
    int64_t covered = 0;
    for (const auto& piece : layout.shard_pieces()) {
      EXPECT_EQ(piece.offset, covered);  // no gap
      covered += piece.count;
    }
    EXPECT_EQ(covered, layout.shard_size());
  }
}

TEST_P(LayoutTest, ShardsAreTheWhole) {
  const auto layer = trial_layer();
  const LayerLayout layout(layer, GetParam(), MeshPlace::of(0, GetParam()));
  int64_t total = 0;
  for (const int64_t size : layout.shard_sizes()) total += size;
  EXPECT_EQ(total, layout.num_params());
}

INSTANTIATE_TEST_SUITE_P(Meshes, LayoutTest,
                         testing::Values(MeshShape{1, 1, 1}, MeshShape{3, 1, 1}, MeshShape{1, 5, 1},
                                         MeshShape{1, 1, 2}, MeshShape{1, 1, 6}, MeshShape{2, 2, 1},
                                         MeshShape{2, 3, 2}, MeshShape{1, 7, 3}, MeshShape{3, 2, 4}),
                         [](const auto& given) {
                           const MeshShape& shape = given.param;
                           return "r" + std::to_string(shape.dp_replicate) + "s" +
                                  std::to_string(shape.dp_shard) + "t" + std::to_string(shape.tp);
                         });

TEST(MeshPlaceTest, NumbersRanksWithTensorPeersAsNeighbours) {
  const MeshShape shape{2, 3, 4};
  for (int rank = 0; rank < shape.size(); ++rank) EXPECT_EQ(MeshPlace::of(rank, shape).rank(shape), rank);
  EXPECT_EQ(MeshPlace::of(1, shape).tp, 1);
  EXPECT_EQ(MeshPlace::of(4, shape).shard, 1);
  EXPECT_EQ(MeshPlace::of(12, shape).replica, 1);
}

TEST(MeshPlaceTest, StagesAreOutermostAndContextIsBesideTensors) {
  const MeshShape shape{.dp_replicate = 2, .dp_shard = 3, .tp = 2, .cp = 2, .pp = 2};
  for (int rank = 0; rank < shape.size(); ++rank) EXPECT_EQ(MeshPlace::of(rank, shape).rank(shape), rank);
  EXPECT_EQ(MeshPlace::of(1, shape).tp, 1);
  EXPECT_EQ(MeshPlace::of(2, shape).cp, 1);
  EXPECT_EQ(MeshPlace::of(4, shape).shard, 1);
  EXPECT_EQ(MeshPlace::of(12, shape).replica, 1);
  EXPECT_EQ(MeshPlace::of(24, shape).stage, 1);
}

}  // namespace
}  // namespace chiliad::parallel
