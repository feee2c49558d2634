#pragma once

#include <ATen/core/Tensor.h>

#include "chiliad/layers/tensor_parallel.h"
#include "chiliad/ops/linear_cross_entropy.h"

namespace chiliad::layers {

/// Rows of a table whose rows the ranks share: each looks up its own words, the sum has all.
/// table: [V_rank, D]; tokens: [T] int64, every rank's the same.   returns: [1, T_rank, D], own rows
[[nodiscard]] at::Tensor vocabulary_embedding(const TensorParallel& ranks, const at::Tensor& table,
                                              const at::Tensor& tokens);

/// ops::linear_cross_entropy over such a table. The loss is equal on all ranks; by the convention its
/// upstream gradient is the sum of what the ranks give (one of them 1, or each 1 / size), and the gradient of
/// hidden is partial. hidden: [T, D], all rows.
[[nodiscard]] ops::TokenLosses vocabulary_loss(const TensorParallel& ranks, const at::Tensor& hidden,
                                               const at::Tensor& table, const at::Tensor& targets,
                                               const at::Tensor& token_weights, int64_t chunk);

}  // namespace chiliad::layers
