#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// Group norm with affine: each item's channels in `groups` groups, normalised over channels and positions;
/// statistics in fp32 at least.
/// x: [B, C, H, W], C divisible by groups; weight, bias: [C].
[[nodiscard]] at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                                    const at::Tensor& bias, double eps);

/// silu(group_norm(x)). Keeps x and two numbers a group for backward: the normed value is made again there.
[[nodiscard]] at::Tensor group_norm_silu(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                                         const at::Tensor& bias, double eps);

}  // namespace chiliad::ops
