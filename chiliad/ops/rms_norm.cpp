#include "chiliad/ops/rms_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "chiliad/ops/cpu/tensor_rows.h"
#include "chiliad/ops/value_kernels.h"
#include "chiliad/ops/wide_type.h"

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct RmsNorm : public torch::autograd::Function<RmsNorm> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight, double eps) {
    if (kernels::takes_values({x, weight})) {
      const auto made = kernels::rms_norm_forward(cpu::as_matrix(x), weight.contiguous(), eps);
      context->save_for_backward({x, weight, made.scale});
      return made.out.view(x.sizes());
    }
    const at::Tensor wide = x.to(wide_type(x));
    const at::Tensor scale = wide.square().mean({-1}, true).add_(eps).rsqrt_();  // [..., 1]
    context->save_for_backward({x, weight, scale});
    return (wide * scale).to(x.scalar_type()) * weight;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const at::Tensor& scale = saved[2];
    if (kernels::takes_values({x, saved[1]})) {
      const auto [of_x, of_weight] = kernels::rms_norm_backward(cpu::as_matrix(x), saved[1].contiguous(),
                                                                scale, cpu::as_matrix(gradients[0]));
      return {of_x.view(x.sizes()), of_weight, {}};
    }
    const at::Tensor normed = x.to(wide_type(x)) * scale;
    const at::Tensor gradient = gradients[0].to(wide_type(x));
    const at::Tensor weight_gradient =
        (gradient * normed).view({-1, x.size(-1)}).sum(0).to(saved[1].scalar_type());
    const at::Tensor inner = gradient * saved[1];
    const at::Tensor mean = (inner * normed).mean({-1}, true);
    const at::Tensor x_gradient = (inner - normed * mean).mul_(scale).to(x.scalar_type());
    return {x_gradient, weight_gradient, {}};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return RmsNorm::apply(x, weight, eps);
}

}  // namespace chiliad::ops
