#include <cstdint>

#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

/// What may follow a lead byte: how many bytes, and the range of the first of them (the others are 80..BF).
struct Lead {
  size_t following = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
};

/// Unicode Standard, table 3-7 (well-formed byte sequences); following = 0 for what is no lead byte.
Lead lead_of(uint8_t byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {1};
  if (byte == 0xE0) return {2, 0xA0, 0xBF};
  if (byte == 0xED) return {2, 0x80, 0x9F};
  if (byte >= 0xE1 && byte <= 0xEF) return {2};
  if (byte == 0xF0) return {3, 0x90, 0xBF};
  if (byte >= 0xF1 && byte <= 0xF3) return {3};
  if (byte == 0xF4) return {3, 0x80, 0x8F};
  return {};
}

}  // namespace

Utf8Step next_character(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (byte_at(0) < 0x80) return {1, true};
  const Lead lead = lead_of(byte_at(0));
  if (lead.following == 0) return {1, false};
  for (size_t i = 1; i <= lead.following; ++i) {
    const uint8_t low = i == 1 ? lead.low : 0x80;
    const uint8_t high = i == 1 ? lead.high : 0xBF;
    if (i >= text.size() || byte_at(i) < low || byte_at(i) > high) return {i, false};
  }
  return {lead.following + 1, true};
}

}  // namespace chiliad::text::detail
