#include "chiliad/ops/group_norm.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct Sizes {
  int64_t items;
  int64_t channels;
  int64_t positions;
};

Sizes sizes_of(const at::Tensor& x) {
  return {x.size(0), x.size(1), x.numel() / std::max<int64_t>(x.size(0) * x.size(1), 1)};
}

struct GroupNormSilu : public torch::autograd::Function<GroupNormSilu> {
  static Variable forward(AutogradContext* context, const Variable& given, const Variable& weight,
                          const Variable& bias, int64_t groups, double eps) {
    const at::Tensor x = given.contiguous();
    const auto [items, channels, positions] = sizes_of(x);
    auto [y, mean, scale] = at::native_group_norm(x, weight, bias, items, channels, positions, groups, eps);
    context->save_for_backward({x, weight, bias, mean, scale});
    context->saved_data["groups"] = groups;
    context->saved_data["eps"] = eps;
    return at::silu_(y);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor& x = saved[0];
    const int64_t groups = context->saved_data["groups"].toInt();
    const double eps = context->saved_data["eps"].toDouble();
    const auto [items, channels, positions] = sizes_of(x);
    const at::Tensor normed =
        std::get<0>(at::native_group_norm(x, saved[1], saved[2], items, channels, positions, groups, eps));
    const at::Tensor inner = at::silu_backward(gradients[0].contiguous(), normed);
    const auto [x_gradient, weight_gradient, bias_gradient] = at::native_group_norm_backward(
        inner, x, saved[3], saved[4], saved[1], items, channels, positions, groups, {true, true, true});
    return {x_gradient, weight_gradient, bias_gradient, {}, {}};
  }
};

}  // namespace

at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight, const at::Tensor& bias,
                      double eps) {
  return at::group_norm(x, groups, weight, bias, eps);
}

at::Tensor group_norm_silu(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                           const at::Tensor& bias, double eps) {
  return GroupNormSilu::apply(x, weight, bias, groups, eps);
}

}  // namespace chiliad::ops
