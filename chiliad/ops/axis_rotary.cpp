#include "chiliad/ops/axis_rotary.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "chiliad/ops/value_kernels.h"
#include "chiliad/ops/wide_type.h"

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Turns by the angles of the tables, or back.   cos, sin: [T, 1, head size / 2]
at::Tensor turn(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin, bool back) {
  if (kernels::takes_values({x}) && cos.scalar_type() == at::kFloat)
    return kernels::turn_pairs(x.contiguous(), cos.squeeze(1).contiguous(), sin.squeeze(1).contiguous(),
                               back);
  const at::ScalarType wide = wide_type(x);
  const at::Tensor c = cos.to(wide);
  const at::Tensor s = back ? -sin.to(wide) : sin.to(wide);
  const at::Tensor pairs = x.to(wide).reshape({x.size(0), x.size(1), -1, cos.size(2), 2});
  const at::Tensor a = pairs.select(-1, 0);
  const at::Tensor b = pairs.select(-1, 1);
  return at::stack({a * c - b * s, b * c + a * s}, -1).view(x.sizes()).to(x.scalar_type());
}

/// Its backward is the turn back; it keeps the tables alone.
struct RotatePairs : public torch::autograd::Function<RotatePairs> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& cos,
                          const Variable& sin) {
    context->save_for_backward({cos, sin});
    return turn(x, cos, sin, false);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    return {turn(gradients[0], saved[0], saved[1], true), {}, {}};
  }
};

}  // namespace

std::pair<at::Tensor, at::Tensor> axis_rotary_tables(const at::Tensor& positions,
                                                     const std::vector<int64_t>& axis_sizes, double theta) {
  std::vector<at::Tensor> angles;
  for (size_t axis = 0; axis < axis_sizes.size(); ++axis) {
    const int64_t size = axis_sizes[axis];
    const at::Tensor exponents = at::arange(0, size, 2, at::kDouble) / static_cast<double>(size);
    const at::Tensor frequencies = 1.0 / at::pow(theta, exponents).to(positions.device());
    angles.push_back(positions.select(1, static_cast<int64_t>(axis)).to(at::kDouble).unsqueeze(1) *
                     frequencies.unsqueeze(0));
  }
  const at::Tensor all = at::cat(angles, 1);  // [T, head size / 2]
  return {at::cos(all).to(at::kFloat), at::sin(all).to(at::kFloat)};
}

at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin) {
  return RotatePairs::apply(x, cos.unsqueeze(1), sin.unsqueeze(1));
}

}  // namespace chiliad::ops
