#pragma once

#include <cstdint>
#include <functional>

#include "chiliad/base/shape.h"

namespace chiliad::checkpoint::detail {

/// Calls `copy(from, to, count)` for the pieces that carry `common` from an array holding `source` to one
/// holding `target`: element positions in the two row-major arrays, ascending in `from`. `common` lies in
/// both.
void for_each_piece(const Box& source, const Box& target, const Box& common,
                    const std::function<void(int64_t from, int64_t to, int64_t count)>& copy);

}  // namespace chiliad::checkpoint::detail
