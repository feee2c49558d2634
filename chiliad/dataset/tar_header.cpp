#include "chiliad/dataset/detail/tar_header.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace chiliad::dataset::detail {
namespace {

struct FieldPlace {
  size_t offset;
  size_t length;
};
constexpr FieldPlace kName{0, 100};
constexpr FieldPlace kSize{124, 12};
constexpr FieldPlace kChecksum{148, 8};
constexpr size_t kType = 156;
constexpr FieldPlace kMagic{257, 6};
constexpr FieldPlace kPrefix{345, 155};
constexpr size_t kSparseContinues = 482;           // in the header
constexpr size_t kSparseExtensionContinues = 504;  // in an extension block

std::string_view field_of(const TarBlock& block, FieldPlace place) {
  return {block.data() + place.offset, place.length};
}

/// Up to the first NUL.
std::string_view text_of(const TarBlock& block, FieldPlace place) {
  const std::string_view field = field_of(block, place);
  return field.substr(0, field.find('\0'));
}

std::optional<uint64_t> parse_base256(std::string_view field) {
  uint64_t value = static_cast<uint8_t>(field[0]) & 0x7F;
  if ((value & 0x40) != 0) return std::nullopt;  // negative
  for (const char c : field.substr(1)) {
    if (value >> 55 != 0) return std::nullopt;
    value = value << 8 | static_cast<uint8_t>(c);
  }
  return value;
}

std::optional<uint64_t> parse_decimal(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return value;
}

}  // namespace

bool is_zero(const TarBlock& block) {
  return std::all_of(block.begin(), block.end(), [](char c) { return c == 0; });
}

bool has_right_checksum(const TarBlock& block) {
  const auto stored = parse_tar_number(field_of(block, kChecksum));
  if (!stored.has_value()) return false;
  int64_t unsigned_sum = 0;
  int64_t signed_sum = 0;
  for (size_t i = 0; i < block.size(); ++i) {
    const bool own = i >= kChecksum.offset && i < kChecksum.offset + kChecksum.length;
    const char c = own ? ' ' : block[i];
    unsigned_sum += static_cast<uint8_t>(c);
    signed_sum += static_cast<signed char>(c);
  }
  const auto sum = static_cast<int64_t>(*stored);
  return sum == unsigned_sum || sum == signed_sum;
}

std::optional<uint64_t> parse_tar_number(std::string_view field) {
  if ((static_cast<uint8_t>(field[0]) & 0x80) != 0) return parse_base256(field);
  const size_t first = field.find_first_not_of(' ');
  if (first == std::string_view::npos) return std::nullopt;
  field.remove_prefix(first);
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < field.size() && field[digits] >= '0' && field[digits] <= '7'; ++digits) {
    value = value << 3 | static_cast<uint64_t>(field[digits] - '0');
  }
  const bool ended = field.find_first_not_of(std::string_view(" \0", 2), digits) == std::string_view::npos;
  if (digits == 0 || !ended) return std::nullopt;
  return value;
}

std::string tar_name(const TarBlock& block) {
  std::string name(text_of(block, kName));
  const bool ustar = field_of(block, kMagic) == std::string_view("ustar\0", 6);
  const std::string_view prefix = text_of(block, kPrefix);
  if (ustar && !prefix.empty()) name = std::string(prefix) + "/" + name;
  return name;
}

char tar_type(const TarBlock& block) {
  return block[kType];
}

std::string_view tar_size_field(const TarBlock& block) {
  return field_of(block, kSize);
}

bool sparse_continues(const TarBlock& block, bool is_header) {
  return block[is_header ? kSparseContinues : kSparseExtensionContinues] != 0;
}

std::optional<PaxRecords> parse_pax(std::string_view text) {
  PaxRecords records;
  while (!text.empty() && text.front() != '\0') {
    const size_t space = text.find(' ');
    if (space == std::string_view::npos) return std::nullopt;
    const auto length = parse_decimal(text.substr(0, space));
    if (!length.has_value() || *length > text.size() || *length < space + 3) return std::nullopt;
    std::string_view record = text.substr(space + 1, *length - space - 1);
    const size_t equals = record.find('=');
    if (record.back() != '\n' || equals == std::string_view::npos) return std::nullopt;
    record.remove_suffix(1);
    const std::string_view key = record.substr(0, equals);
    const std::string_view value = record.substr(equals + 1);
    if (key == "path") records.path = std::string(value);
    if (key == "size") {
      records.size = parse_decimal(value);
      if (!records.size.has_value()) return std::nullopt;
    }
    if (key.starts_with("GNU.sparse.")) records.sparse = true;
    text.remove_prefix(*length);
  }
  return records;
}

std::string guess_container(std::span<const char> bytes) {
  const std::string_view text(bytes.data(), bytes.size());
  if (text.starts_with("\x1F\x8B")) return "gzip";
  if (text.starts_with("PK\x03\x04")) return "zip";
  if (text.starts_with("\x28\xB5\x2F\xFD")) return "zstd";
  if (text.starts_with("BZh")) return "bzip2";
  if (text.starts_with(std::string_view("\xFD"
                                        "7zXZ\0",
                                        6)))
    return "xz";
  return {};
}

}  // namespace chiliad::dataset::detail
