#include "chiliad/ops/cpu/gemm.h"

#include <algorithm>
#include <cstring>

#include "chiliad/ops/cpu/micro_kernel.h"
#include "chiliad/ops/cpu/parallel.h"

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {
namespace {

constexpr int64_t kRowBlock = 192;      // rows of `a` that a thread takes at once
constexpr int64_t kDepthBlock = 384;    // a panel of `b` of this depth is 48 KiB
constexpr int64_t kColumnBlock = 2048;  // columns of `b` that are laid out at once
constexpr int64_t kApart = 16;          // keeps rows of buffers off the same cache sets
constexpr int64_t kPackRows = 16;

enum Slot { kRight, kStage, kLeft, kSums, kEdge };

int64_t round_up(int64_t value, int64_t to) {
  return (value + to - 1) / to * to;
}

/// Where values [first, first + count) of `num_rows` rows are: in the matrix itself or in the stage.
struct Staged {
  const float* data;
  int64_t stride;
};
Staged stage(const Rows& rows, int64_t row, int64_t num_rows, int64_t first, int64_t count, Slot slot) {
  int64_t stride = 0;
  if (const float* memory = rows.memory(&stride)) return {memory + row * stride + first, stride};
  stride = count + kApart;
  float* data = scratch(slot, num_rows * stride);
  for (int64_t i = 0; i < num_rows; ++i) rows.read(row + i, first, count, data + i * stride);
  return {data, stride};
}

/// Columns [first, first + count) of b, in panels of 32: panel [K][32].
class RightPanels {
 public:
  RightPanels(const Factor& b, int64_t depth, int64_t first, int64_t count)
      : b_(b), depth_(depth), first_(first), count_(count) {
    panels_ = scratch(kRight, round_up(count, kTileColumns) * depth);
    if (b.transposed) {
      for_each_part((count + kPackRows - 1) / kPackRows, [this](int64_t i) { pack_columns(i * kPackRows); });
    } else {
      for_each_part((depth + kPackRows - 1) / kPackRows, [this](int64_t i) { pack_rows(i * kPackRows); });
    }
  }

  [[nodiscard]] const float* at(int64_t column, int64_t k) const {
    return panels_ + column / kTileColumns * kTileColumns * depth_ + k * kTileColumns;
  }

 private:
  [[nodiscard]] float* to(int64_t column, int64_t k) const {
    return panels_ + column / kTileColumns * kTileColumns * depth_ + k * kTileColumns + column % kTileColumns;
  }

  void pack_rows(int64_t k) const {
    const int64_t rows = std::min(kPackRows, depth_ - k);
    const Staged from = stage(b_.rows, k, rows, first_, count_, kStage);
    for (int64_t column = 0; column < count_; column += kTileColumns) {
      const int64_t width = std::min(kTileColumns, count_ - column);
      for (int64_t i = 0; i < rows; ++i) {
        const float* source = from.data + i * from.stride + column;
        float* target = to(column, k + i);
        store(target, load(source, first_lanes(std::min(width, kLanes))));
        store(target + kLanes, load(source + kLanes, first_lanes(std::max<int64_t>(width - kLanes, 0))));
      }
    }
  }

  void pack_columns(int64_t column) const {
    const int64_t columns = std::min(kPackRows, count_ - column);
    const Staged from = stage(b_.rows, first_ + column, columns, 0, depth_, kStage);
    int64_t k = 0;
    if (columns == kPackRows) {
      for (; k + kPackRows <= depth_; k += kPackRows)
        transpose_tile(from.data + k, from.stride, to(column, k), kTileColumns);
    }
    for (; k < depth_; ++k) {
      float* target = to(column, k);
      for (int64_t i = 0; i < columns; ++i) target[i] = from.data[i * from.stride + k];
    }
    clear_rest(column + columns);
  }

  /// Columns of the last panel beyond the matrix.
  void clear_rest(int64_t column) const {
    if (column != count_ || column % kTileColumns == 0) return;
    for (int64_t k = 0; k < depth_; ++k) {
      float* target = to(column, k);
      std::fill(target, target + kTileColumns - column % kTileColumns, 0.0F);
    }
  }

  const Factor& b_;
  int64_t depth_;
  int64_t first_;
  int64_t count_;
  float* panels_;
};

/// Columns [first, first + count) of the product, one block of rows at a time.
class ColumnBlock {
 public:
  ColumnBlock(const ProductShape& shape, const Factor& a, const RightPanels& right, const RowSink& out,
              int64_t first, int64_t count)
      : shape_(shape), a_(a), right_(right), out_(out), first_(first), count_(count) {}

  void make(int64_t row) const {
    const int64_t rows = std::min(kRowBlock, shape_.m - row);
    int64_t stride = 0;
    float* sums = out_.memory(&stride);
    const bool in_place = sums != nullptr;
    if (in_place) {
      sums += row * stride + first_;
    } else {
      stride = round_up(count_, kTileColumns) + kApart;
      sums = scratch(kSums, rows * stride);
    }
    for (int64_t k = 0; k < shape_.k; k += kDepthBlock) add_depth(row, rows, k, sums, stride, in_place);
    if (in_place) return;
    for (int64_t i = 0; i < rows; ++i) out_.write(row + i, first_, count_, sums + i * stride);
  }

 private:
  [[nodiscard]] TileLeft left(int64_t row, int64_t rows, int64_t k, int64_t depth) const {
    if (!a_.transposed) {
      const Staged from = stage(a_.rows, row, rows, k, depth, kLeft);
      return {from.data, from.stride, 1};
    }
    // Always copied: a column of the matrix would touch a page for each k.
    float* data = scratch(kLeft, depth * kRowBlock);
    for (int64_t i = 0; i < depth; ++i) a_.rows.read(k + i, row, rows, data + i * kRowBlock);
    return {data, 1, kRowBlock};
  }

  void add_depth(int64_t row, int64_t rows, int64_t k, float* sums, int64_t stride, bool in_place) const {
    const int64_t depth = std::min(kDepthBlock, shape_.k - k);
    const TileLeft a = left(row, rows, k, depth);
    for (int64_t column = 0; column < count_; column += kTileColumns) {
      const TileRight b{right_.at(column, k)};
      if (in_place && count_ - column < kTileColumns) {
        add_edge(rows, depth, a, b, sums + column, stride, count_ - column, k > 0);
      } else {
        multiply_column(rows, depth, a, b, sums + column, stride, k > 0);
      }
    }
  }

  /// Of the last panel only `width` columns are the product's.
  static void add_edge(int64_t rows, int64_t depth, TileLeft a, TileRight b, float* out, int64_t stride,
                       int64_t width, bool add) {
    float* tile = scratch(kEdge, rows * kTileColumns);
    const size_t bytes = static_cast<size_t>(width) * sizeof(float);
    for (int64_t i = 0; i < rows && add; ++i) std::memcpy(tile + i * kTileColumns, out + i * stride, bytes);
    multiply_column(rows, depth, a, b, tile, kTileColumns, add);
    for (int64_t i = 0; i < rows; ++i) std::memcpy(out + i * stride, tile + i * kTileColumns, bytes);
  }

  const ProductShape& shape_;
  const Factor& a_;
  const RightPanels& right_;
  const RowSink& out_;
  int64_t first_;
  int64_t count_;
};

}  // namespace

void gemm(const ProductShape& shape, const Factor& a, const Factor& b, const RowSink& out) {
  for (int64_t first = 0; first < shape.n; first += kColumnBlock) {
    const int64_t count = std::min(kColumnBlock, shape.n - first);
    const RightPanels right(b, shape.k, first, count);
    const ColumnBlock block(shape, a, right, out, first, count);
    for_each_part((shape.m + kRowBlock - 1) / kRowBlock, [&](int64_t i) { block.make(i * kRowBlock); });
  }
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
