#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// softmax(q k^T / sqrt(head size)) v per head, full attention.
/// q: [B, N, D], k and v: [B, M, D], D divisible by heads; key_mask: [B, M] bool, true where a key counts, or
/// undefined. Every row must have at least one key.   returns: [B, N, D]
[[nodiscard]] at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                   int64_t heads, const at::Tensor& key_mask);

}  // namespace chiliad::ops
