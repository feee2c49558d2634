#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "chiliad/image/detail/srgb_transform.h"
#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// Sizes as stored, before orientation.
[[nodiscard]] Outcome<Info> read_webp_header(std::span<const std::byte> bytes);

/// Body of the first chunk of that name behind the header; cut where the file is, empty where it is missing.
[[nodiscard]] std::span<const std::byte> webp_chunk(std::span<const std::byte> bytes, std::string_view name);

/// The picture, or the first frame of an animation, over `background`; turned as `stored.orientation` says.
/// colours: null: as they are stored.
[[nodiscard]] Outcome<HostArray> decode_webp(std::span<const std::byte> bytes, const Info& stored,
                                             const std::array<uint8_t, 3>& background,
                                             const SrgbTransform* colours);

}  // namespace chiliad::image::detail
