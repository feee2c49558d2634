#include "chiliad/ops/attention.h"

#include <ATen/ATen.h>

namespace chiliad::ops {
namespace {

at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads})
      .transpose(1, 2);  // [B, heads, N, D / heads]
}

}  // namespace

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, int64_t heads,
                     const at::Tensor& key_mask) {
  std::optional<at::Tensor> mask;
  if (key_mask.defined()) {
    mask = key_mask.view({key_mask.size(0), 1, 1, key_mask.size(1)});  // broadcast: nothing of size N x M
  }
  const at::Tensor out = at::scaled_dot_product_attention(split_heads(q, heads), split_heads(k, heads),
                                                          split_heads(v, heads), mask);
  return out.transpose(1, 2).reshape(q.sizes());
}

}  // namespace chiliad::ops
