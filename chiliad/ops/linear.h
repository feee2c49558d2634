#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops {

struct LinearParams {
  at::Tensor weight;  ///< [out, in]
  at::Tensor bias;    ///< [out], or undefined
};

/// x W^T + b over the last dimension. Where the processor has wide registers, products are made in fp32 for
/// bf16 too (bf16 instructions have half the rate there), rounded once.
[[nodiscard]] at::Tensor linear(const at::Tensor& x, const LinearParams& params);

/// linear(gelu(inner)), tanh approximation. Backward keeps `inner` alone.
[[nodiscard]] at::Tensor gelu_linear(const at::Tensor& inner, const LinearParams& params);

/// linear(norm_modulate(x, shift, scale, eps)) for layers of equal sizes, all with a bias or none. Backward
/// keeps x and two numbers a row.
/// x: [B, N, D]; shift, scale: [B, 1, D]. lengths: x is a pack [1, R, D] of B items, of so many rows each;
/// empty: items of equal length.
[[nodiscard]] std::vector<at::Tensor> norm_modulate_linears(const at::Tensor& x, const at::Tensor& shift,
                                                            const at::Tensor& scale, double eps,
                                                            const std::vector<LinearParams>& params,
                                                            const std::vector<int64_t>& lengths = {});

/// The same operators made of ATen's: what the above are checked against, and do on other processors and
/// types.
namespace plain {
[[nodiscard]] at::Tensor linear(const at::Tensor& x, const LinearParams& params);
[[nodiscard]] at::Tensor gelu_linear(const at::Tensor& inner, const LinearParams& params);
[[nodiscard]] std::vector<at::Tensor> norm_modulate_linears(const at::Tensor& x, const at::Tensor& shift,
                                                            const at::Tensor& scale, double eps,
                                                            const std::vector<LinearParams>& params,
                                                            const std::vector<int64_t>& lengths = {});
}  // namespace plain

}  // namespace chiliad::ops
