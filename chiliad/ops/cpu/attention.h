#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops::cpu {

/// Queries [first_query, first_query + num_queries) see keys [first_key, first_key + num_keys).
struct AttentionBlock {
  int64_t first_query = 0;
  int64_t num_queries = 0;
  int64_t first_key = 0;
  int64_t num_keys = 0;
};

/// q: [Q, W]; k, v: [K, W]; rows may lie apart, values of a row not. W divisible by heads. Blocks are
/// disjoint in queries and in keys. key_mask: [K] bool, or undefined; a block without a key gives zeros.
struct AttentionInput {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
  int64_t heads = 1;
  std::vector<AttentionBlock> blocks;
  at::Tensor key_mask;
};

struct AttentionOutput {
  at::Tensor out;      ///< [Q, W], of the type of q
  at::Tensor log_sum;  ///< [heads, Q] fp32: log of the sum of e^score
};

/// softmax(q k^T / sqrt(head size)) v in each block and head, in fp32, never with a matrix of all pairs. One
/// thread makes a block's head: the same bits for any number of threads. Needs `takes`.
[[nodiscard]] AttentionOutput attention_forward(const AttentionInput& input);

struct AttentionGradients {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
};
/// Makes the scores again. gradient: [Q, W] of `out`.
[[nodiscard]] AttentionGradients attention_backward(const AttentionInput& input,
                                                    const AttentionOutput& output,
                                                    const at::Tensor& gradient);

}  // namespace chiliad::ops::cpu
