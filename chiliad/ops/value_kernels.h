#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "chiliad/ops/cpu/norm.h"
#include "chiliad/ops/cpu/values.h"
#include "chiliad/ops/cuda/values.h"

/// What makes values from values (cpu/norm.h, cpu/values.h, cuda/values.h), by the kernels of the device that
/// the tensors are on.
namespace chiliad::ops::kernels {

[[nodiscard]] inline bool takes_values(const std::vector<at::Tensor>& tensors) {
  return tensors.front().is_cuda() ? cuda::takes_values(tensors) : cpu::takes_values(tensors);
}

[[nodiscard]] inline cuda::NormOutput norm_forward(const cpu::NormInput& input, double eps) {
  if (input.x.is_cuda()) return cuda::norm_forward(input, eps);
  const at::Tensor moments = cpu::row_moments(input.x, eps);
  return {cpu::norm_forward(input, moments), moments};
}

/// gradient: of the result, of its shape and type.
[[nodiscard]] inline cpu::NormInput norm_backward(const cpu::NormInput& input, const at::Tensor& moments,
                                                  const at::Tensor& gradient) {
  return input.x.is_cuda() ? cuda::norm_backward(input, moments, cpu::as_matrix(gradient))
                           : cpu::norm_backward(input, moments, cpu::as_matrix(gradient.to(at::kFloat)));
}

[[nodiscard]] inline at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                             const std::vector<int64_t>& lengths) {
  return x.is_cuda() ? cuda::gate_forward(x, gate, y, lengths) : cpu::gate_forward(x, gate, y, lengths);
}

[[nodiscard]] inline std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate,
                                                                     const at::Tensor& y,
                                                                     const at::Tensor& gradient,
                                                                     const std::vector<int64_t>& lengths) {
  return y.is_cuda() ? cuda::gate_backward(gate, y, gradient, lengths)
                     : cpu::gate_backward(gate, y, gradient, lengths);
}

[[nodiscard]] inline at::Tensor gelu_forward(const at::Tensor& x) {
  return x.is_cuda() ? cuda::gelu_forward(x) : cpu::gelu_forward(x);
}

[[nodiscard]] inline at::Tensor gelu_backward(const at::Tensor& x, const at::Tensor& gradient) {
  return x.is_cuda() ? cuda::gelu_backward(x, gradient) : cpu::gelu_backward(x, gradient);
}

[[nodiscard]] inline cpu::RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight,
                                                         double eps) {
  return x.is_cuda() ? cuda::rms_norm_forward(x, weight, eps) : cpu::rms_norm_forward(x, weight, eps);
}

[[nodiscard]] inline std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& x,
                                                                         const at::Tensor& weight,
                                                                         const at::Tensor& scale,
                                                                         const at::Tensor& gradient) {
  return x.is_cuda() ? cuda::rms_norm_backward(x, weight, scale, gradient)
                     : cpu::rms_norm_backward(x, weight, scale, gradient);
}

[[nodiscard]] inline at::Tensor turn_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                                           bool back) {
  return x.is_cuda() ? cuda::turn_pairs(x, cos, sin, back) : cpu::turn_pairs(x, cos, sin, back);
}

}  // namespace chiliad::ops::kernels
