#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops {

/// softmax(q k^T / sqrt(head size)) v per head, full attention.
/// q: [B, N, D], k and v: [B, M, D], D divisible by heads; key_mask: [B, M] bool, true where a key counts, or
/// undefined. Every row must have at least one key.   returns: [B, N, D]
[[nodiscard]] at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   int64_t heads, const at::Tensor& key_mask);

/// The same inside each item of a pack: work grows with the sum of the products of lengths.
/// q: [Q, D]; k and v: [K, D]; query_lengths, key_lengths: one an item, together Q and K; each item with
/// queries has keys.   returns: [Q, D]
[[nodiscard]] at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          int64_t heads, const std::vector<int64_t>& query_lengths,
                                          const std::vector<int64_t>& key_lengths);

/// The same operators made of ATen's.
namespace plain {
[[nodiscard]] at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   int64_t heads, const at::Tensor& key_mask);
[[nodiscard]] at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          int64_t heads, const std::vector<int64_t>& query_lengths,
                                          const std::vector<int64_t>& key_lengths);
}  // namespace plain

}  // namespace chiliad::ops
