#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "chiliad/ops/cpu/norm.h"
#include "chiliad/ops/cpu/values.h"

/// What cpu/norm.h and cpu/values.h have, on the current stream of the tensors' GPU: shapes and meanings are
/// the same. They need `takes_values`; without CUDA it is false and the others throw.
namespace chiliad::ops::cuda {

/// True for tensors on one GPU, all fp32, all bf16 or all fp16; undefined ones are passed over.
[[nodiscard]] bool takes_values(const std::vector<at::Tensor>& tensors);

struct NormOutput {
  at::Tensor out;
  at::Tensor moments;  ///< [R, 2] fp32
};
[[nodiscard]] NormOutput norm_forward(const cpu::NormInput& input, double eps);
/// gradient: of the type of x.
[[nodiscard]] cpu::NormInput norm_backward(const cpu::NormInput& input, const at::Tensor& moments,
                                           const at::Tensor& gradient);

[[nodiscard]] at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                      const std::vector<int64_t>& lengths);
[[nodiscard]] std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate, const at::Tensor& y,
                                                              const at::Tensor& gradient,
                                                              const std::vector<int64_t>& lengths);

[[nodiscard]] at::Tensor gelu_forward(const at::Tensor& x);
[[nodiscard]] at::Tensor gelu_backward(const at::Tensor& x, const at::Tensor& gradient);

[[nodiscard]] cpu::RmsNormOutput rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double eps);
[[nodiscard]] std::pair<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& x,
                                                                  const at::Tensor& weight,
                                                                  const at::Tensor& scale,
                                                                  const at::Tensor& gradient);

[[nodiscard]] at::Tensor turn_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin,
                                    bool back);

}  // namespace chiliad::ops::cuda
