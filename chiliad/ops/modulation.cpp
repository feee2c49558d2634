#include "chiliad/ops/modulation.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "chiliad/ops/cpu/tensor_rows.h"
#include "chiliad/ops/value_kernels.h"

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
    return kernels::gate_forward(as_matrix(x), as_matrix(gate), as_matrix(y), lengths).view(x.sizes());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const auto [of_gate, of_y] =
        kernels::gate_backward(as_matrix(saved[0]), as_matrix(saved[1]), as_matrix(gradients[0]),
                               context->saved_data["lengths"].toIntVector());
    return {gradients[0], of_gate.view(saved[0].sizes()), of_y.view(saved[1].sizes()), {}};
  }
};

/// With kernels, whose statistics are [R, 2]; or ATen's, whose mean and rstd are [..., 1] each.
struct NormModulate : public torch::autograd::Function<NormModulate> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& shift,
                          const Variable& scale, double eps, const std::vector<int64_t>& lengths) {
    context->saved_data["eps"] = eps;
    context->saved_data["lengths"] = lengths;
    if (kernels::takes_values({x, shift, scale})) {
      const cpu::NormInput input{as_matrix(x), as_matrix(shift), as_matrix(scale), lengths};
      const auto made = kernels::norm_forward(input, eps);
      context->save_for_backward({x, shift, scale, made.moments});
      return made.out.view(x.sizes());
    }
    const auto [normed, mean, root] = at::native_layer_norm(x, {x.size(-1)}, {}, {}, eps);
    context->save_for_backward({x, shift, scale, mean, root});
    return at::addcmul(normed + shift, normed, scale);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return saved.size() == 4 ? kernel_backward(*context, saved, gradients[0])
                             : plain_backward(*context, saved, gradients[0]);
  }

 private:
  static variable_list kernel_backward(AutogradContext& context, const variable_list& saved,
                                       const at::Tensor& gradient) {
    const cpu::NormInput input{as_matrix(saved[0]), as_matrix(saved[1]), as_matrix(saved[2]),
                               context.saved_data["lengths"].toIntVector()};
    const auto of = kernels::norm_backward(input, saved[3], gradient);
    return {of.x.view(saved[0].sizes()),
            of.shift.view(saved[1].sizes()),
            of.scale.view(saved[2].sizes()),
            {},
            {}};
  }

  static variable_list plain_backward(AutogradContext& context, const variable_list& saved,
                                      const at::Tensor& gradient) {
    const at::Tensor& x = saved[0];
    const at::Tensor& scale = saved[2];
    at::Tensor along =
        std::get<0>(at::native_layer_norm(x, {x.size(-1)}, {}, {}, context.saved_data["eps"].toDouble()));
    const at::Tensor of_scale = along.mul_(gradient).sum_to_size(scale.sizes());
    along.reset();
    const at::Tensor inner = gradient * (scale + 1.0);
    const at::Tensor of_x = std::get<0>(at::native_layer_norm_backward(
        inner, x, {x.size(-1)}, saved[3], saved[4], {}, {}, {true, false, false}));
    return {of_x, gradient.sum_to_size(saved[1].sizes()), of_scale, {}, {}};
  }
};

struct Gelu : public torch::autograd::Function<Gelu> {
  static Variable forward(AutogradContext* context, const Variable& x) {
    context->save_for_backward({x});
    return kernels::gelu_forward(x.contiguous());
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const at::Tensor x = context->get_saved_variables()[0];
    return {kernels::gelu_backward(as_matrix(x), cpu::as_rows(gradients[0])).view(x.sizes())};
  }
};

}  // namespace

at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale, double eps,
                         const std::vector<int64_t>& lengths) {
  if (kernels::takes_values({x, shift, scale})) return NormModulate::apply(x, shift, scale, eps, lengths);
  const std::vector<int64_t> none;
  return NormModulate::apply(x, repeat_for_rows(shift, lengths), repeat_for_rows(scale, lengths), eps, none);
}

at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                          const std::vector<int64_t>& lengths) {
  if (x.sizes() != y.sizes() || !kernels::takes_values({x, gate, y}))
    return plain::gated_residual(x, gate, y, lengths);
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
  return kernels::takes_values({x}) ? Gelu::apply(x) : at::gelu(x, "tanh");
}

}  // namespace chiliad::ops
