#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace chiliad::ops {

/// Queries, keys and values of one stream of tokens, each [B, N, D].
struct Stream {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};

/// One full attention over the tokens of two streams, `first` before `second`.   Source: SD3, MMDiT.
/// returns: what the tokens of each get, [B, N, D] and [B, M, D]
[[nodiscard]] std::pair<at::Tensor, at::Tensor> joint_attention(const Stream& first, const Stream& second,
                                                                int64_t heads);

/// The same inside each item of a pack: streams are [1, R, D], items of so many rows of each.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> packed_joint_attention(
    const Stream& first, const Stream& second, int64_t heads, const std::vector<int64_t>& first_lengths,
    const std::vector<int64_t>& second_lengths);

/// RMS norm of every head by itself.   x: [B, N, D]; weight: [head size]
[[nodiscard]] at::Tensor norm_heads(const at::Tensor& x, const at::Tensor& weight, double eps = 1e-6);

}  // namespace chiliad::ops
