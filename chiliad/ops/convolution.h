#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// Convolutions that keep height and width, zeros around: kernel [D, C, k, k] with k odd, bias [D]; x: [B, C,
/// H, W]. Where no graph is built (at::NoGradGuard) large pictures on the host are made in strips of rows, so
/// that of the steps inside only a strip exists: peak memory is that of x and the result.
[[nodiscard]] at::Tensor convolve(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& bias);

struct GroupNormParams {
  int64_t groups = 1;
  at::Tensor weight;  ///< [C]
  at::Tensor bias;    ///< [C]
  double eps = 1e-6;
};

/// convolve(silu(group_norm(x)))
[[nodiscard]] at::Tensor norm_silu_convolve(const at::Tensor& x, const GroupNormParams& norm,
                                            const at::Tensor& kernel, const at::Tensor& bias);

/// convolve(x with each value four times).   returns: [B, D, 2 H, 2 W]
[[nodiscard]] at::Tensor upsample_convolve(const at::Tensor& x, const at::Tensor& kernel,
                                           const at::Tensor& bias);

/// What the strips hold of x or the result; larger ones are cut.
inline constexpr int64_t kMostStripValues = int64_t{1} << 22;

}  // namespace chiliad::ops
