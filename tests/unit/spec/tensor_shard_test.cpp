#include "chiliad/spec/tensor_shard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

ParamDecl matrix(Shape shape, Split split, int64_t parts = 1) {
  return {"layer.weight", std::move(shape), Init::kZero, true, split, parts};
}

LayerDecl layer_of(ParamDecl param) {
  LayerDecl layer{};
  layer.params.push_back(std::move(param));
  return layer;
}

Shape local_shape(const ParamDecl& param, int size) {
  return tensor_shard(layer_of(param), size).params[0].shape;
}

/// How often each value of the logical matrix lies in a box of some rank, whose rows are cut once more.
std::vector<int> coverage(const ParamDecl& param, int size, int64_t row_step) {
  std::vector<int> counts(static_cast<size_t>(param.shape.count()));
  for (int rank = 0; rank < size; ++rank) {
    const int64_t rows = local_shape(param, size)[0];
    for (int64_t begin = 0; begin < rows; begin += row_step) {
      for (const auto& piece : shard_boxes(param, rank, size, begin, std::min(rows, begin + row_step))) {
        EXPECT_EQ(piece.box.size[0], piece.num_rows);
        for (int64_t row = 0; row < piece.box.size[0]; ++row) {
          for (int64_t column = 0; column < piece.box.size[1]; ++column) {
            ++counts[static_cast<size_t>((piece.box.offset[0] + row) * param.shape[1] + piece.box.offset[1] +
                                         column)];
          }
        }
      }
    }
  }
  return counts;
}

TEST(EvenPartTest, FirstPartsAreLarger) {
  EXPECT_EQ(even_part(7, 0, 3), (std::pair<int64_t, int64_t>{0, 3}));
  EXPECT_EQ(even_part(7, 1, 3), (std::pair<int64_t, int64_t>{3, 5}));
  EXPECT_EQ(even_part(7, 2, 3), (std::pair<int64_t, int64_t>{5, 7}));
}

TEST(EvenPartTest, PartsMayBeEmpty) {
  EXPECT_EQ(even_part(1, 1, 3), (std::pair<int64_t, int64_t>{1, 1}));
}

TEST(TensorShardTest, RowsAreCut) {
  EXPECT_EQ(local_shape(matrix(Shape{12, 5}, Split::kRows), 4), (Shape{3, 5}));
}

TEST(TensorShardTest, ColumnsAreCut) {
  EXPECT_EQ(local_shape(matrix(Shape{5, 12}, Split::kColumns), 4), (Shape{5, 3}));
}

TEST(TensorShardTest, AVectorIsCutByItsElements) {
  EXPECT_EQ(local_shape(matrix(Shape{12}, Split::kRows, 3), 2), (Shape{6}));
}

TEST(TensorShardTest, OthersStayWhole) {
  EXPECT_EQ(local_shape(matrix(Shape{5, 7}, Split::kNone), 4), (Shape{5, 7}));
}

TEST(TensorShardTest, OneRankHoldsAll) {
  EXPECT_EQ(local_shape(matrix(Shape{5, 7}, Split::kRows, 3), 1), (Shape{5, 7}));
}

TEST(TensorShardTest, NamesWhatCannotBeCut) {
  try {
    (void)tensor_shard(layer_of(matrix(Shape{12, 5}, Split::kRows, 3)), 8);
    FAIL() << "no exception";
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("layer.weight"));
    EXPECT_THAT(error.what(), testing::HasSubstr("12 is not a multiple of 24"));
  }
}

struct Cut {
  const char* name;
  Shape shape;
  Split split;
  int64_t parts;
  int size;
};

class ShardBoxes : public testing::TestWithParam<Cut> {
 protected:
  ParamDecl param() const { return matrix(GetParam().shape, GetParam().split, GetParam().parts); }
};

TEST_P(ShardBoxes, CoverTheTensorOnce) {
  for (const int64_t step : {1, 2, 3, 5, 100}) {
    const auto counts = coverage(param(), GetParam().split == Split::kNone ? 1 : GetParam().size, step);
    EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << "rows taken by " << step;
  }
}

TEST_P(ShardBoxes, FollowTheLocalRows) {
  for (int rank = 0; rank < GetParam().size; ++rank) {
    const int64_t rows = local_shape(param(), GetParam().size)[0];
    int64_t next = 1;
    for (const auto& piece : shard_boxes(param(), rank, GetParam().size, 1, rows)) {
      EXPECT_EQ(piece.first_row, next);
      next += piece.num_rows;
    }
    EXPECT_EQ(next, rows);
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, ShardBoxes,
                         testing::Values(Cut{"rows", Shape{12, 3}, Split::kRows, 1, 3},
                                         Cut{"threeFused", Shape{18, 2}, Split::kRows, 3, 2},
                                         Cut{"twoFusedFourRanks", Shape{24, 2}, Split::kRows, 2, 4},
                                         Cut{"columns", Shape{4, 12}, Split::kColumns, 1, 4},
                                         Cut{"whole", Shape{4, 3}, Split::kNone, 1, 2},
                                         Cut{"oneRank", Shape{9, 2}, Split::kRows, 3, 1}),
                         [](const auto& test) { return test.param.name; });

TEST(ShardBoxesTest, EachFusedPartIsCutByItself) {
  const auto boxes = shard_boxes(matrix(Shape{12, 2}, Split::kRows, 3), 1, 2, 0, 6);
  ASSERT_EQ(boxes.size(), 3u);
  for (size_t part = 0; part < 3; ++part) {
    EXPECT_EQ(boxes[part].box.offset[0], static_cast<int64_t>(part) * 4 + 2);
    EXPECT_EQ(boxes[part].num_rows, 2);
  }
}

TEST(ShardBoxesTest, ColumnsBeginAtTheRanksPart) {
  const auto boxes = shard_boxes(matrix(Shape{4, 12}, Split::kColumns), 2, 4, 1, 3);
  ASSERT_EQ(boxes.size(), 1u);
  EXPECT_EQ(boxes[0].box.offset, (Shape{1, 6}));
  EXPECT_EQ(boxes[0].box.size, (Shape{2, 3}));
}

}  // namespace
}  // namespace chiliad::spec
