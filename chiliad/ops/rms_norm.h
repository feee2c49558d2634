#pragma once

#include <ATen/core/Tensor.h>

namespace chiliad::ops {

/// x / sqrt(mean(x^2) + eps) * weight over the last dimension; computed in fp32 (fp64 for fp64), cast back,
/// then multiplied by the weight. Keeps x and one number a row for backward.
/// x: [..., D]; weight: [D].   Source: transformers, LlamaRMSNorm.
[[nodiscard]] at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace chiliad::ops
