#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace chiliad::dataset::detail {

inline constexpr uint64_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

[[nodiscard]] bool is_zero(const TarBlock& block);
/// Whether the block's checksum field is the sum of its bytes (signed or unsigned, as tars of both kinds
/// exist).
[[nodiscard]] bool has_right_checksum(const TarBlock& block);
/// Octal, or base-256 with the top bit set; nothing if it is neither, or above 2^63 - 1.
[[nodiscard]] std::optional<uint64_t> parse_tar_number(std::string_view field);
/// The name of the ustar fields (prefix / name) or of the old name field.
[[nodiscard]] std::string tar_name(const TarBlock& block);
[[nodiscard]] char tar_type(const TarBlock& block);
[[nodiscard]] std::string_view tar_size_field(const TarBlock& block);
/// GNU sparse headers of the old kind: whether an extension block follows this one.
[[nodiscard]] bool sparse_continues(const TarBlock& block, bool is_header);

/// What pax records say of the next member.
struct PaxRecords {
  std::optional<std::string> path;
  std::optional<uint64_t> size;
  bool sparse = false;
};
/// Nothing if a record has not the form "LENGTH KEY=VALUE\n".
[[nodiscard]] std::optional<PaxRecords> parse_pax(std::string_view text);

/// What a file's first bytes look like, for messages: "gzip", "zip", ...; empty if unknown.
[[nodiscard]] std::string guess_container(std::span<const char> bytes);

}  // namespace chiliad::dataset::detail
