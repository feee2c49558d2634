#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::layers {

/// Sum of the ranks' parts, which lie one after the other, in rank order; in fp32 (fp64 for fp64), given in
/// the type of the parts.   parts: [ranks * n].   returns: [n]
[[nodiscard]] at::Tensor sum_of_ranks(const at::Tensor& parts, int64_t num_ranks);

}  // namespace chiliad::layers
