#pragma once

#include <ATen/core/Tensor.h>

namespace chiliad::ops {

/// silu(gate) * up; both of one shape. Keeps the two inputs for backward.
[[nodiscard]] at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace chiliad::ops
