#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"

namespace chiliad::stepplan {

/// A keyed bijection of [0, size) in O(1) memory: a Feistel network over the next even number of bits, walked
/// until it falls into the domain again. Values are part of the stored order (docs/formats/plan.md).
/// Thread-safe. Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
class Permutation {
 public:
  Permutation(uint64_t size, uint64_t key) : size_(size) {
    CHILIAD_CHECK_GT(size, 0U);
    const int bits = std::bit_width(size - 1);
    half_bits_ = bits < 2 * kMinHalfBits ? kMinHalfBits : (bits + 1) / 2;
    for (uint64_t& round_key : keys_) round_key = key = mix64(key);
  }

  [[nodiscard]] uint64_t size() const { return size_; }

  /// Where `x` goes. x < size.
  [[nodiscard]] uint64_t operator()(uint64_t x) const {
    CHILIAD_CHECK_LT(x, size_);
    do {
      x = encrypt(x);
    } while (x >= size_);
    return x;
  }

 private:
  static constexpr int kMinHalfBits = 3;  // fewer bits reach too few orders of a handful of items

  [[nodiscard]] uint64_t encrypt(uint64_t x) const {
    const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
    uint64_t left = x >> half_bits_;
    uint64_t right = x & mask;
    for (const uint64_t key : keys_) {
      const uint64_t next = (left ^ mix64(right ^ key)) & mask;
      left = right;
      right = next;
    }
    return left << half_bits_ | right;
  }

  uint64_t size_;
  int half_bits_;
  std::array<uint64_t, 6> keys_{};
};

}  // namespace chiliad::stepplan
