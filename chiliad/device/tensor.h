#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "chiliad/base/host_array.h"

namespace chiliad::device {

[[nodiscard]] at::ScalarType to_scalar_type(DType dtype);
/// Of precision.compute: "fp32" or "bf16".
[[nodiscard]] at::ScalarType compute_type(const std::string& name);

/// A tensor over the array's memory, which must outlive it. No copy.
[[nodiscard]] at::Tensor as_tensor(const HostArray& array);

/// A copy on the host. The tensor must be dense.
[[nodiscard]] HostArray to_host(const at::Tensor& tensor);

/// Intra-op threads of this process; part of the layout, for it changes sums on the CPU.
void set_compute_threads(int threads);

}  // namespace chiliad::device
