#include "chiliad/ops/joint_attention.h"

#include <ATen/ATen.h>

#include "chiliad/ops/attention.h"
#include "chiliad/ops/rms_norm.h"

namespace chiliad::ops {

std::pair<at::Tensor, at::Tensor> joint_attention(const Stream& first, const Stream& second, int64_t heads) {
  const int64_t count = first.q.size(1);
  const at::Tensor mixed = attention(at::cat({first.q, second.q}, 1), at::cat({first.k, second.k}, 1),
                                     at::cat({first.v, second.v}, 1), heads, {});
  return {mixed.narrow(1, 0, count), mixed.narrow(1, count, second.q.size(1))};
}

at::Tensor norm_heads(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return rms_norm(x.view({x.size(0), x.size(1), -1, weight.size(0)}), weight, eps).view(x.sizes());
}

}  // namespace chiliad::ops
