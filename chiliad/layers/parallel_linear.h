#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "chiliad/layers/tensor_parallel.h"

namespace chiliad::layers {

/// Linear layers beside the exchange of their rows: rows go in chunks, and while one is on its way the
/// product of another is made. Same results as gather_rows, scatter_rows and a linear layer up to the order
/// of sums; gradients by the convention of TensorParallel.

struct GatheredLinear {
  at::Tensor out;   ///< [B, S, D_rank]
  at::Tensor rows;  ///< [B, S, C], for further linear layers on them; undefined where not wanted
};

/// x: [B, S_rank, C], this rank's part of S = `length` rows; weight: [D_rank, C]; bias: [D_rank] or
/// undefined. In backward the rows' gradient is reduced while the weight's is made.
[[nodiscard]] GatheredLinear gather_linear(const TensorParallel& ranks, const at::Tensor& x,
                                           const at::Tensor& weight, const at::Tensor& bias, int64_t length,
                                           bool want_rows);

/// x: [B, S, C_rank]; weight: [D, C_rank].   returns: [B, S_rank, D], summed over the ranks.
[[nodiscard]] at::Tensor linear_scatter(const TensorParallel& ranks, const at::Tensor& x,
                                        const at::Tensor& weight);

}  // namespace chiliad::layers
