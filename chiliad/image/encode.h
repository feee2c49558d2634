#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "chiliad/base/host_array.h"

namespace chiliad::image {

/// PNG bytes of uint8 [H, W, 3]. Same pixels, same bytes. profile: an ICC profile of RGB; empty: none.
[[nodiscard]] std::vector<std::byte> encode_png(const HostArray& picture,
                                                std::span<const std::byte> profile = {});
/// JPEG bytes (4:2:0, baseline) of uint8 [H, W, 3]; quality 1..100. profile: as encode_png.
[[nodiscard]] std::vector<std::byte> encode_jpeg(const HostArray& picture, int quality,
                                                 std::span<const std::byte> profile = {});

}  // namespace chiliad::image
