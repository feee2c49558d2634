#include "chiliad/image/color.h"

#include <charconv>
#include <string>

#include "chiliad/base/error.h"

namespace chiliad::image {

std::array<uint8_t, 3> parse_color(std::string_view text) {
  if (text == "white") return {255, 255, 255};
  if (text == "black") return {0, 0, 0};
  unsigned value = 0;
  if (text.size() == 7 && text[0] == '#') {
    const auto [end, status] = std::from_chars(text.data() + 1, text.data() + 7, value, 16);
    if (status == std::errc() && end == text.data() + 7) {
      return {static_cast<uint8_t>(value >> 16), static_cast<uint8_t>(value >> 8),
              static_cast<uint8_t>(value)};
    }
  }
  throw InvalidInput("data.background", fmt::format("expected white, black or #rrggbb, got '{}'", text));
}

}  // namespace chiliad::image
