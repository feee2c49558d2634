#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chiliad {

inline constexpr int64_t kKiB = 1024;
inline constexpr int64_t kMiB = 1024 * kKiB;
inline constexpr int64_t kGiB = 1024 * kMiB;

/// "1.5 GiB", "312 B".
[[nodiscard]] std::string format_bytes(int64_t bytes);
/// Reads "512", "64KiB", "1.5 GiB", "2GB" (decimal); nothing if it is none of these or does not fit.
[[nodiscard]] std::optional<int64_t> parse_bytes(std::string_view text);
/// "1.2 s", "340 ms", "2 min 5 s".
[[nodiscard]] std::string format_seconds(double seconds);

}  // namespace chiliad
