#pragma once

#include <ATen/core/Tensor.h>

namespace chiliad::ops {

/// The type in which operators that lose digits (norms, softmax, losses) compute on values of `x`: fp64 for
/// fp64, else fp32.
[[nodiscard]] inline at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace chiliad::ops
