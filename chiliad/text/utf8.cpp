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

uint32_t code_point(std::string_view character) {
  const auto byte_at = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(character[i])); };
  if (character.size() == 1) return byte_at(0);
  uint32_t point = byte_at(0) & (0x7FU >> character.size());
  for (size_t i = 1; i < character.size(); ++i) point = (point << 6U) | (byte_at(i) & 0x3FU);
  return point;
}

void append_utf8(std::string& out, uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  const int following = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  const uint32_t lead = following == 1 ? 0xC0 : following == 2 ? 0xE0 : 0xF0;
  out += static_cast<char>(lead | (code_point >> (6U * static_cast<uint32_t>(following))));
  for (int i = following - 1; i >= 0; --i)
    out += static_cast<char>(0x80U | ((code_point >> (6U * static_cast<uint32_t>(i))) & 0x3FU));
}

bool replace_broken(std::string_view text, std::string& out) {
  out.clear();
  out.reserve(text.size());
  bool replaced = false;
  while (!text.empty()) {
    const Utf8Step step = next_character(text);
    out += step.valid ? text.substr(0, step.length) : kReplacement;
    replaced |= !step.valid;
    text.remove_prefix(step.length);
  }
  return replaced;
}

}  // namespace chiliad::text::detail
