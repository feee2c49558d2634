#include "chiliad/ops/swiglu.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

namespace chiliad::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct SwiGlu : public torch::autograd::Function<SwiGlu> {
  static Variable forward(AutogradContext* context, const Variable& gate, const Variable& up) {
    context->save_for_backward({gate, up});
    return at::silu(gate).mul_(up);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    const at::Tensor up_gradient = at::silu(saved[0]).mul_(gradients[0]);
    return {at::silu_backward(gradients[0] * saved[1], saved[0]), up_gradient};
  }
};

}  // namespace

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  return SwiGlu::apply(gate, up);
}

}  // namespace chiliad::ops
