#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace chiliad::test {

/// SHA-256 as 64 lower-case hex digits, for digests that kits are published with (FIPS 180-4).
[[nodiscard]] std::string sha256_hex(std::span<const std::byte> bytes);

}  // namespace chiliad::test
