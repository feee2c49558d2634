#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "chiliad/ops/cpu/tensor_rows.h"

namespace chiliad::ops::cpu {

/// Runs of rows that share a modulation, one an item.
class RowRuns {
 public:
  /// lengths: of the runs, together `rows`; empty: `items` runs of equal length.
  RowRuns(int64_t rows, int64_t items, const std::vector<int64_t>& lengths);
  [[nodiscard]] int64_t count() const { return count_; }
  [[nodiscard]] int64_t begin(int64_t item) const {
    return begins_.empty() ? item * length_ : begins_[static_cast<size_t>(item)];
  }
  [[nodiscard]] int64_t end(int64_t item) const { return begin(item + 1); }
  [[nodiscard]] int64_t item_of(int64_t row) const {
    return begins_.empty() ? row / length_ : items_[static_cast<size_t>(row)];
  }

 private:
  int64_t count_;
  int64_t length_ = 1;
  std::vector<int64_t> begins_;  // of unequal runs, and the end
  std::vector<int32_t> items_;   // of each row
};

/// A layer norm without affine, then (1 + scale) x + shift: x [R, D]; shift and scale [B, D] of one type, for
/// B runs of rows (RowRuns). Needs `takes_values`.
struct NormInput {
  at::Tensor x;
  at::Tensor shift;
  at::Tensor scale;
  std::vector<int64_t> lengths{};
};

/// Mean and 1 / sqrt(variance + eps) of each row.   returns: [R, 2] fp32
[[nodiscard]] at::Tensor row_moments(const at::Tensor& x, double eps);

/// The rows of the result, made as they are read.
class NormRows final : public Rows {
 public:
  NormRows(const NormInput& input, const at::Tensor& moments);
  void read(int64_t row, int64_t first, int64_t count, float* out) const override;

 private:
  Matrix x_;
  Matrix shift_;
  Matrix scale_;
  Matrix moments_;
  RowRuns runs_;
};

/// All rows of the result, [R, D] of the type of x.
[[nodiscard]] at::Tensor norm_forward(const NormInput& input, const at::Tensor& moments);

/// gradient: [R, D] fp32, of the result.   returns: of x, shift and scale, of their type
[[nodiscard]] NormInput norm_backward(const NormInput& input, const at::Tensor& moments,
                                      const at::Tensor& gradient);

/// x + gate * y; x, y [R, D]; gate [B, D], for B runs of rows.
[[nodiscard]] at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                      const std::vector<int64_t>& lengths);
/// Of gate and y.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate, const at::Tensor& y,
                                                              const at::Tensor& gradient,
                                                              const std::vector<int64_t>& lengths);

}  // namespace chiliad::ops::cpu
