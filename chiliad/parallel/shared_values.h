#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "chiliad/comm/group.h"

namespace chiliad::parallel {

/// `count` values, zeroed, which calls of `group` read in place where it has memory for that.
[[nodiscard]] at::Tensor shared_values(comm::Group& group, int64_t count, at::ScalarType type = at::kFloat);

}  // namespace chiliad::parallel
