#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// LayerNorm without affine (eps 1e-6), then x * (1 + scale) + shift.
/// x: [B, N, D]; shift, scale: [B, 1, D].   Source: DiT, adaLN.
[[nodiscard]] at::Tensor norm_modulate(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale);

/// x + gate * y; gate: [B, 1, D].
[[nodiscard]] at::Tensor gated_residual(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y);

/// LayerNorm with affine, eps 1e-5. weight, bias: [D].
[[nodiscard]] at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias);

/// fc2(gelu_tanh(fc1(x))).
[[nodiscard]] at::Tensor mlp(const at::Tensor& x, const at::Tensor& w1, const at::Tensor& b1,
                             const at::Tensor& w2, const at::Tensor& b2);

}  // namespace chiliad::ops
