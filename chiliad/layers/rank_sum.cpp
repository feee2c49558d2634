#include "chiliad/layers/rank_sum.h"

#include <ATen/ATen.h>

#include "chiliad/ops/wide_type.h"

namespace chiliad::layers {

at::Tensor sum_of_ranks(const at::Tensor& parts, int64_t num_ranks) {
  const at::Tensor list = parts.view({num_ranks, -1});
  const auto type = ops::wide_type(parts);
  at::Tensor sum = list[0].to(type, false, true);
  for (int64_t i = 1; i < num_ranks; ++i) sum.add_(list[i]);
  return sum.to(parts.scalar_type());
}

}  // namespace chiliad::layers
