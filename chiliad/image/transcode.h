#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "chiliad/image/image.h"

namespace chiliad::image {

/// A JPEG that `decode` takes, progressive or arithmetic-coded, as a baseline one with the same coefficients,
/// so that it decodes to the same pixels, and with all its markers (EXIF, ICC). Of one that `decode` refuses,
/// missing scans would no longer show. Never throws for bad bytes. Same bytes in, same bytes out.
/// Thread-safe.
[[nodiscard]] Outcome<std::vector<std::byte>> to_baseline_jpeg(std::span<const std::byte> bytes,
                                                               const Limits& limits = {});

}  // namespace chiliad::image
