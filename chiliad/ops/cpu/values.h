#pragma once

#include <ATen/core/Tensor.h>

#include <utility>

namespace chiliad::ops::cpu {

// Values made of values in one pass over memory, in fp32 inside; tensors are dense. Need `takes_values`.

/// gelu with the tanh approximation.
[[nodiscard]] at::Tensor gelu_forward(const at::Tensor& x);
/// Of its input, [R, D]; rows of the gradient may lie apart.
[[nodiscard]] at::Tensor gelu_backward(const at::Tensor& x, const at::Tensor& gradient);

/// x / root mean square of its row, times the weight.   x: [R, D]; weight: [D]
struct RmsNormOutput {
  at::Tensor out;    ///< of the type of x
  at::Tensor scale;  ///< [R] fp32: 1 / root mean square
};
[[nodiscard]] RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps);
/// Of x and of the weight.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& x,
                                                                  const at::Tensor& weight,
                                                                  const at::Tensor& scale,
                                                                  const at::Tensor& gradient);

/// Turns each pair of neighbours in every head by the angle of its position, or back.   x: [B, T, heads * 2
/// n]; cos, sin: [T, n] fp32, dense
[[nodiscard]] at::Tensor turn_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                                    bool back);

}  // namespace chiliad::ops::cpu
