#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// The format by its first bytes; names and extensions are never asked.
[[nodiscard]] Format sniff(std::span<const std::byte> bytes);

/// What bytes of no known format look like: "an HTML page", "gzip data", ...
[[nodiscard]] std::string guess_content(std::span<const std::byte> bytes);

}  // namespace chiliad::image::detail
