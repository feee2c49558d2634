#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops::cuda {

/// True where ATen's flash attention takes packs: bf16 or fp16 on a GPU from A100 on, heads of a multiple of
/// 8 up to 256 values.
[[nodiscard]] bool takes_packs(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads);

/// As ops::packed_attention, by flash attention over all items at once; backward has the same bits each time.
/// Needs `takes_packs`.
[[nodiscard]] at::Tensor packed_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                                          int64_t heads, const std::vector<int64_t>& query_lengths,
                                          const std::vector<int64_t>& key_lengths);

}  // namespace chiliad::ops::cuda
