#include "chiliad/ops/modulation.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "chiliad/ops/cpu/norm.h"
#include "chiliad/ops/cpu/tensor_rows.h"
#include "chiliad/ops/remake.h"

namespace chiliad::ops {
namespace {

using cpu::as_matrix;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct GatedResidual : public torch::autograd::Function<GatedResidual> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& gate,
                          const Variable& y, const std::vector<int64_t>& lengths) {
    context->save_for_backward({gate, y});
    context->saved_data["lengths"] = lengths;
    return cpu::gate_forward(as_matrix(x), as_matrix(gate), as_matrix(y), lengths).view(x.sizes());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto [of_gate, of_y] =
        cpu::gate_backward(as_matrix(saved[0]), as_matrix(saved[1]), as_matrix(gradients[0]),
                           context->saved_data["lengths"].toIntVector());
    return {gradients[0], of_gate.view(saved[0].sizes()), of_y.view(saved[1].sizes()), {}};
  }
};

}  // namespace

at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, double eps) {
  return remade([x, eps] { return at::layer_norm(x, {x.size(-1)}, {}, {}, eps); },
                [&](const at::Tensor& normed) { return at::addcmul(normed + shift, normed, scale); });
}

at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                          const std::vector<int64_t>& lengths) {
  if (x.sizes() != y.sizes() || !cpu::takes({x, gate, y})) return plain::gated_residual(x, gate, y, lengths);
  return GatedResidual::apply(x, gate, y, lengths);
}

at::Tensor plain::gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                 const std::vector<int64_t>& lengths) {
  return at::addcmul(x, repeat_for_rows(gate, lengths), y);
}

at::Tensor repeat_for_rows(const at::Tensor& items, const std::vector<int64_t>& lengths) {
  if (lengths.empty()) return items;
  const at::Tensor counts = at::tensor(lengths, at::kLong).to(items.device());
  return at::repeat_interleave(items.squeeze(1), counts, 0).unsqueeze(0);
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::layer_norm(x, {x.size(-1)}, weight, bias, 1e-5);
}

at::Tensor gelu(const at::Tensor& x) {
  return at::gelu(x, "tanh");
}

}  // namespace chiliad::ops
