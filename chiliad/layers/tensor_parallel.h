#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "chiliad/comm/group.h"

namespace chiliad::layers {

/// The ranks that share a layer: each has a part of the wide weights (spec/tensor_shard.h) and, between the
/// parallel regions, a part of the rows of the sequence. One rank without a group is the case of size 1.
///
/// Convention for gradients: the gradient of a tensor of which every rank has the same copy (replicated
/// parameters, activations that are not cut) is on each rank a *partial* one; the sum over the ranks is the
/// gradient. The gradient of a tensor of which a rank has a part is whole. The operations below keep this.
struct TensorParallel {
  comm::Group* group = nullptr;
  [[nodiscard]] int rank() const { return group == nullptr ? 0 : group->rank(); }
  [[nodiscard]] int size() const { return group == nullptr ? 1 : group->size(); }
};

/// This rank's rows of a sequence that every rank has: a view of x [B, S, ...] along dimension 1 (see
/// spec::even_part), for inputs. Differentiable: zero outside of the part, as the convention asks.
[[nodiscard]] at::Tensor own_rows(const TensorParallel& ranks, const at::Tensor& x);

/// Rows of all ranks, before a linear layer cut by rows of its weight.
/// x: [B, S_rank, ...], this rank's part of S = `length` rows.   returns: [B, S, ...]
/// Backward sums the ranks' partial gradients in rank order (fp32, fp64 for fp64) and gives each its rows.
[[nodiscard]] at::Tensor gather_rows(const TensorParallel& ranks, const at::Tensor& x, int64_t length);

/// Sums the ranks' partial results in rank order (fp32) and gives each rank its rows, after a linear layer
/// cut by columns. x: [B, S, ...].   returns: [B, S_rank, ...]. Backward gathers.
[[nodiscard]] at::Tensor scatter_rows(const TensorParallel& ranks, const at::Tensor& x);

/// Sums the ranks' partial results in rank order (fp32), for activations that are not cut. Backward sums too.
[[nodiscard]] at::Tensor sum_partial(const TensorParallel& ranks, const at::Tensor& x);

/// x itself, where every rank has made the same value of all ranks' parts (a loss). Backward sums: the ranks'
/// upstream gradients are partial ones.
[[nodiscard]] at::Tensor sum_gradient(const TensorParallel& ranks, const at::Tensor& x);

/// Largest of all ranks, element by element; without gradient.
[[nodiscard]] at::Tensor largest_of_ranks(const TensorParallel& ranks, const at::Tensor& x);

}  // namespace chiliad::layers
