#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace chiliad::comm {

/// Element types that can be summed.
enum class PartType { kF32, kBF16 };

/// Of a tensor to be reduced; InternalError for any other type.
[[nodiscard]] PartType part_type(const at::Tensor& tensor);

/// out[i] = parts[0][i] + parts[1][i] + ... in this order, in fp32; accumulate: from what out[i] holds. The
/// same bits on every machine. `out` overlaps no part.
void sum_parts(std::span<const void* const> parts, PartType type, int64_t count, float* out, bool accumulate);

}  // namespace chiliad::comm
