#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops {

/// Causal attention inside each document of a pack; work grows with the sum of length^2, never with T^2.
/// q: [T, H, d]; k, v: [T, H_kv, d], where query head h uses key head h / (H / H_kv); cu_seqlens: [D + 1]
/// int64 or int32 on the host, from 0 to T, not falling.   returns: [T, H, d]
[[nodiscard]] at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          const at::Tensor& cu_seqlens);

/// Its two steps. The first gives one part a document that has tokens, [L, H_kv, H / H_kv, d]; the second
/// copies several of them to [T, H, d].
[[nodiscard]] std::vector<at::Tensor> attend_documents(const at::Tensor& q, const at::Tensor& k,
                                                       const at::Tensor& v, const at::Tensor& cu_seqlens);
[[nodiscard]] at::Tensor join_documents(const std::vector<at::Tensor>& parts);

/// Lengths of the documents. Throws InternalError if cu_seqlens is not as above for `num_tokens` tokens.
[[nodiscard]] std::vector<int64_t> document_lengths(const at::Tensor& cu_seqlens, int64_t num_tokens);

}  // namespace chiliad::ops
