#include "chiliad/dataset/detail/near_duplicates.h"

#include <algorithm>
#include <bit>

#include "chiliad/image/resize.h"

namespace chiliad::dataset::detail {

uint64_t difference_hash(const HostArray& picture) {
  constexpr int kWidth = 9;
  constexpr int kHeight = 8;
  const HostArray small = image::resize(picture, kWidth, kHeight, image::Filter::kBox);
  const auto pixels = small.as<uint8_t>();
  const auto brightness = [&](int y, int x) {
    const auto* pixel = pixels.data() + (static_cast<size_t>(y) * kWidth + static_cast<size_t>(x)) * 3;
    return pixel[0] + pixel[1] + pixel[2];
  };
  uint64_t hash = 0;
  for (int y = 0; y < kHeight; ++y) {
    for (int x = 0; x + 1 < kWidth; ++x)
      hash = hash << 1 | static_cast<uint64_t>(brightness(y, x) < brightness(y, x + 1));
  }
  return hash;
}

std::optional<uint32_t> NearDuplicates::find(uint64_t hash) const {
  std::optional<uint32_t> first;
  for (int band = 0; band < kBands; ++band) {
    const auto value = static_cast<uint32_t>(hash >> (band * kBandBits) & ((1U << kBandBits) - 1));
    const auto same = places_[static_cast<size_t>(band)].find(value);
    if (same == places_[static_cast<size_t>(band)].end()) continue;
    for (const uint32_t place : same->second) {
      if (std::popcount(kept_[place] ^ hash) <= bits_) {
        first = std::min(first.value_or(place), place);
        break;  // places of a band ascend
      }
    }
  }
  return first;
}

void NearDuplicates::keep(uint64_t hash) {
  const auto place = static_cast<uint32_t>(kept_.size());
  kept_.push_back(hash);
  for (int band = 0; band < kBands; ++band) {
    const auto value = static_cast<uint32_t>(hash >> (band * kBandBits) & ((1U << kBandBits) - 1));
    places_[static_cast<size_t>(band)][value].push_back(place);
  }
}

}  // namespace chiliad::dataset::detail
