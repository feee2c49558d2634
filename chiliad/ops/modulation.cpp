#include "chiliad/ops/modulation.h"

#include <ATen/ATen.h>

#include "chiliad/ops/remake.h"

namespace chiliad::ops {

at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, double eps) {
  return remade([x, eps] { return at::layer_norm(x, {x.size(-1)}, {}, {}, eps); },
                [&](const at::Tensor& normed) { return at::addcmul(normed + shift, normed, scale); });
}

at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y) {
  return at::addcmul(x, gate, y);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5);
}

at::Tensor gelu(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}

}  // namespace chiliad::ops
