#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "chiliad/image/detail/srgb_transform.h"
#include "chiliad/image/image.h"

namespace chiliad::image::detail {

// Profiles of printers, the largest in use, have up to 3 MB.
constexpr int64_t kMaxProfileBytes = int64_t{4} << 20;

/// The ICC profile of a picture of which `info` says that it has one: put together, inflated and checked as
/// far as its file's format goes. A reason where it is damaged or larger than kMaxProfileBytes.
[[nodiscard]] Outcome<std::vector<std::byte>> read_profile(std::span<const std::byte> bytes,
                                                           const Info& info);

/// The conversion that a picture's colours need. Null: none is wanted, it has no profile, it is sRGB, or the
/// profile cannot be applied, which options.profile_note then says.
[[nodiscard]] std::shared_ptr<const SrgbTransform> conversion_of(std::span<const std::byte> bytes,
                                                                 const Info& info,
                                                                 const DecodeOptions& options);

}  // namespace chiliad::image::detail
