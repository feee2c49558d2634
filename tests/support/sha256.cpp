#include "tests/support/sha256.h"

#include <fmt/core.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

namespace chiliad::test {
namespace {

/// First 32 bits of the fraction of a prime's root, the standard's way to its constants.
uint32_t fraction_bits(long double root) {
  return static_cast<uint32_t>((root - std::floor(root)) * 4294967296.0L);
}

struct Constants {
  std::array<uint32_t, 64> rounds{};
  std::array<uint32_t, 8> start{};

  Constants() {
    size_t found = 0;
    for (int n = 2; found < rounds.size(); ++n) {
      bool prime = true;
      for (int d = 2; d * d <= n; ++d) prime = prime && n % d != 0;
      if (!prime) continue;
      if (found < start.size()) start[found] = fraction_bits(std::sqrt(static_cast<long double>(n)));
      rounds[found++] = fraction_bits(std::cbrt(static_cast<long double>(n)));
    }
  }
};

void add_block(std::array<uint32_t, 8>& state, std::span<const uint8_t> block, const Constants& constants) {
  std::array<uint32_t, 64> w{};
  for (size_t i = 0; i < 16; ++i) {
    for (size_t b = 0; b < 4; ++b) w[i] = w[i] << 8U | block[4 * i + b];
  }
  for (size_t i = 16; i < 64; ++i) {
    const uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (size_t i = 0; i < 64; ++i) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + constants.rounds[i] + w[i];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::array<uint32_t, 8> mixed{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state[i] += mixed[i];
}

}  // namespace

std::string sha256_hex(std::span<const std::byte> bytes) {
  static const Constants constants;
  std::vector<uint8_t> padded;
  for (const std::byte b : bytes) padded.push_back(static_cast<uint8_t>(b));
  padded.push_back(0x80);
  while (padded.size() % 64 != 56) padded.push_back(0);
  for (int shift = 56; shift >= 0; shift -= 8)
    padded.push_back(static_cast<uint8_t>(uint64_t{bytes.size()} * 8 >> shift));
  auto state = constants.start;
  for (size_t at = 0; at < padded.size(); at += 64)
    add_block(state, std::span(padded).subspan(at, 64), constants);
  std::string hex;
  for (const uint32_t word : state) hex += fmt::format("{:08x}", word);
  return hex;
}

}  // namespace chiliad::test
