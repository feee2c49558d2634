#pragma once

#include <ATen/core/Tensor.h>

#include "chiliad/ops/cpu/tensor_rows.h"

namespace chiliad::ops::cpu {

/// A layer norm without affine, then (1 + scale) x + shift: x [R, D]; shift and scale [B, D] of one type,
/// R divisible by B: runs of R / B rows have one shift. Needs `takes`.
struct NormInput {
  at::Tensor x;
  at::Tensor shift;
  at::Tensor scale;
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
  int64_t rows_an_item_;
};

/// gradient: [R, D] fp32, of the result.   returns: of x, shift and scale, of their type
[[nodiscard]] NormInput norm_backward(const NormInput& input, const at::Tensor& moments,
                                      const at::Tensor& gradient);

/// x + gate * y; x, y [R, D]; gate [B, D].
[[nodiscard]] at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y);
/// Of gate and y.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate, const at::Tensor& y,
                                                              const at::Tensor& gradient);

}  // namespace chiliad::ops::cpu
