#pragma once

#include <cstddef>
#include <vector>

#include "chiliad/base/host_array.h"

namespace chiliad::image {

/// PNG bytes of uint8 [H, W, 3]. Same pixels, same bytes.
[[nodiscard]] std::vector<std::byte> encode_png(const HostArray& picture);
/// JPEG bytes (4:2:0, baseline) of uint8 [H, W, 3]; quality 1..100.
[[nodiscard]] std::vector<std::byte> encode_jpeg(const HostArray& picture, int quality);

}  // namespace chiliad::image
