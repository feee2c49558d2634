#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace chiliad {

/// 128-bit digest (XXH3). Not cryptographic: finds damage and change, not forgery.
struct Digest {
  uint64_t high = 0;
  uint64_t low = 0;

  auto operator<=>(const Digest&) const = default;
  /// 32 lower-case hex digits.
  [[nodiscard]] std::string hex() const;
  /// Throws CorruptData if `text` is not 32 hex digits.
  [[nodiscard]] static Digest from_hex(std::string_view text);
};

[[nodiscard]] uint64_t hash64(std::span<const std::byte> bytes);
[[nodiscard]] uint64_t hash64(std::string_view text);
[[nodiscard]] Digest hash128(std::span<const std::byte> bytes);

/// Streaming 128-bit hash. Typed `add`s write fixed-width little-endian values with lengths before strings,
/// so that
/// ("a","bc") and ("ab","c") differ.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&& other) noexcept;
  Hasher& operator=(Hasher&& other) noexcept;
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  Hasher& add_bytes(std::span<const std::byte> bytes);
  Hasher& add(uint64_t value);
  Hasher& add(int64_t value) { return add(static_cast<uint64_t>(value)); }
  Hasher& add(int value) { return add(static_cast<uint64_t>(static_cast<int64_t>(value))); }
  Hasher& add(double value);
  Hasher& add(std::string_view text);
  Hasher& add(const char* text) { return add(std::string_view(text)); }
  Hasher& add(const Digest& digest) { return add(digest.high).add(digest.low); }

  [[nodiscard]] Digest digest() const;

 private:
  void* state_;  // XXH3_state_t, owned
};

template <typename T>
[[nodiscard]] std::span<const std::byte> as_bytes_of(const T& value) {
  return std::as_bytes(std::span<const T, 1>(&value, 1));
}

}  // namespace chiliad
