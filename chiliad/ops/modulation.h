#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::ops {

/// LayerNorm without affine, then x * (1 + scale) + shift.
/// x: [B, N, D]; shift, scale: [B, 1, D]. lengths: as in gated_residual. Backward keeps x and the statistics
/// of its rows alone.   Source: DiT, adaLN.
[[nodiscard]] at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                                       double eps = 1e-6, const std::vector<int64_t>& lengths = {});

/// x + gate * y; gate: [B, 1, D]. lengths: x and y are a pack [1, R, D] of B items, of so many rows each;
/// empty: items of equal length, [B, N, D].
[[nodiscard]] at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                        const std::vector<int64_t>& lengths = {});
namespace plain {
/// The same made of ATen's operators.
[[nodiscard]] at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                                        const std::vector<int64_t>& lengths = {});
}  // namespace plain

/// A value of each item, [B, 1, D], repeated for its rows, [1, R, D]; as it is where lengths are empty.
[[nodiscard]] at::Tensor repeat_for_rows(const at::Tensor& items, const std::vector<int64_t>& lengths);

/// LayerNorm with affine, eps 1e-5. weight, bias: [D].
[[nodiscard]] at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// gelu with the tanh approximation.
[[nodiscard]] at::Tensor gelu(const at::Tensor& x);

}  // namespace chiliad::ops
