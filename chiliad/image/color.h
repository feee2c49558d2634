#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace chiliad::image {

/// "white", "black" or "#rrggbb". Throws InvalidInput.
[[nodiscard]] std::array<uint8_t, 3> parse_color(std::string_view text);

}  // namespace chiliad::image
