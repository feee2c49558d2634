#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "chiliad/base/host_array.h"

namespace chiliad::dataset::detail {

/// Difference hash of a picture (uint8 [H, W, 3]): shrunk to 9 x 8 by area, a bit whether each pixel is
/// darker (by the sum of its values) than the one to its right; rows from the top, the first bit highest.
[[nodiscard]] uint64_t difference_hash(const HostArray& picture);

/// Finds hashes that differ in few bits from one that was kept.
class NearDuplicates {
 public:
  static constexpr int kMostBits = 7;

  /// `bits` at most kMostBits.
  explicit NearDuplicates(int bits) : bits_(bits) {}
  /// The place of the first kept hash that is so near.
  [[nodiscard]] std::optional<uint32_t> find(uint64_t hash) const;
  void keep(uint64_t hash);

 private:
  static constexpr int kBands = kMostBits + 1;  // of bits apart in at most seven places, one band is the same
  static constexpr int kBandBits = 64 / kBands;

  int bits_;
  std::vector<uint64_t> kept_;
  std::array<std::unordered_map<uint32_t, std::vector<uint32_t>>, kBands> places_;
};

}  // namespace chiliad::dataset::detail
