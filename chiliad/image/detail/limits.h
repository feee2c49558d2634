#pragma once

#include <cstdint>
#include <string>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// Why a picture of this size must not be decoded, or an empty text. To be asked before anything is
/// allocated.
[[nodiscard]] std::string size_refusal(int64_t width, int64_t height, const Limits& limits);

template <typename T>
[[nodiscard]] Outcome<T> refuse(std::string reason) {
  return {std::nullopt, std::move(reason)};
}

}  // namespace chiliad::image::detail
