#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/base/host_array.h"

namespace chiliad::generate {

/// Pictures side by side, `columns` a row, each scaled by `zoom` (whole pixels, nearest) and centred in a
/// white cell. pictures: uint8 [H, W, 3] each.   returns: uint8 [H, W, 3]
[[nodiscard]] HostArray make_grid(const std::vector<HostArray>& pictures, int columns, int zoom);

}  // namespace chiliad::generate
