#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace chiliad::image::detail {

/// Bytes of a file read with bounds: what lies past the end reads as 0, so a parser needs `has` only where
/// that matters.
class ByteView {
 public:
  explicit ByteView(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(bytes_.size()); }
  [[nodiscard]] bool has(int64_t at, int64_t count) const {
    return at >= 0 && count >= 0 && at <= size() && count <= size() - at;
  }
  [[nodiscard]] uint8_t u8(int64_t at) const {
    return has(at, 1) ? static_cast<uint8_t>(bytes_[static_cast<size_t>(at)]) : uint8_t{0};
  }
  [[nodiscard]] uint32_t be16(int64_t at) const { return u8(at) << 8U | u8(at + 1); }
  [[nodiscard]] uint32_t be32(int64_t at) const { return be16(at) << 16U | be16(at + 2); }
  [[nodiscard]] uint32_t le16(int64_t at) const { return u8(at) | u8(at + 1) << 8U; }
  [[nodiscard]] uint32_t le24(int64_t at) const {
    return le16(at) | static_cast<uint32_t>(u8(at + 2)) << 16U;
  }
  [[nodiscard]] uint32_t le32(int64_t at) const { return le16(at) | le16(at + 2) << 16U; }

  [[nodiscard]] bool starts_with(std::string_view text, int64_t at = 0) const {
    return has(at, static_cast<int64_t>(text.size())) &&
           std::memcmp(bytes_.data() + at, text.data(), text.size()) == 0;
  }
  /// Bytes [at, at + count), cut at the end.
  [[nodiscard]] std::span<const std::byte> part(int64_t at, int64_t count) const {
    if (at < 0 || at > size() || count <= 0) return {};
    return bytes_.subspan(static_cast<size_t>(at),
                          static_cast<size_t>(count < size() - at ? count : size() - at));
  }
  /// As characters; for names and hints.
  [[nodiscard]] std::string_view text(int64_t at, int64_t count) const {
    const auto found = part(at, count);
    return {reinterpret_cast<const char*>(found.data()), found.size()};
  }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace chiliad::image::detail
