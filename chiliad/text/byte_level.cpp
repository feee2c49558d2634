#include "chiliad/text/detail/byte_level.h"

#include <array>

#include "chiliad/text/detail/utf8.h"

namespace chiliad::text::detail {
namespace {

constexpr uint32_t kFirstStandIn = 0x100;
constexpr uint32_t kNoByte = 256;

struct Tables {
  std::array<uint16_t, 256> character{};             // of a byte
  std::array<uint16_t, kFirstStandIn + 256> byte{};  // of a character
};

constexpr bool printable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr Tables make_tables() {
  Tables tables;
  for (auto& byte : tables.byte) byte = kNoByte;
  uint32_t next = kFirstStandIn;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const uint32_t character = printable(byte) ? byte : next++;
    tables.character[byte] = static_cast<uint16_t>(character);
    tables.byte[character] = static_cast<uint16_t>(byte);
  }
  return tables;
}

constexpr Tables kTables = make_tables();

}  // namespace

std::string bytes_to_characters(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size() + bytes.size() / 4);
  for (const char c : bytes) append_utf8(out, kTables.character[static_cast<uint8_t>(c)]);
  return out;
}

std::optional<std::string> characters_to_bytes(std::string_view characters) {
  std::string out;
  while (!characters.empty()) {
    const size_t length = next_character(characters).length;
    const uint32_t point = code_point(characters.substr(0, length));
    if (point >= kTables.byte.size() || kTables.byte[point] == kNoByte) return std::nullopt;
    out += static_cast<char>(kTables.byte[point]);
    characters.remove_prefix(length);
  }
  return out;
}

}  // namespace chiliad::text::detail
