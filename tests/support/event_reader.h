#pragma once

#include <bit>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/io/file.h"

namespace chiliad::test {

/// An event as a reader of the file sees it.
struct ReadEvent {
  int64_t step = 0;
  double wall = 0.0;
  std::string file_version;
  bool restart = false;
  std::map<std::string, float> scalars;
  std::map<std::string, std::string> pngs;
};

/// Reads event files, bit by bit and unlike the writer does. Throws std::runtime_error for wrong checksums
/// and fields.
class EventReader {
 public:
  static std::vector<ReadEvent> read(const std::filesystem::path& path) {
    const std::string bytes = io::read_text(path, 1 << 24);
    std::vector<ReadEvent> events;
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const auto length = fixed(rest.substr(0, 8));
      check(rest.substr(0, 8), fixed(rest.substr(8, 4)));
      const auto body = rest.substr(12, length);
      check(body, fixed(rest.substr(12 + length, 4)));
      events.push_back(parse_event(body));
      rest.remove_prefix(16 + length);
    }
    return events;
  }

 private:
  struct Field {
    uint64_t number = 0;
    uint64_t value = 0;
    std::string_view bytes;
  };

  static uint64_t fixed(std::string_view bytes) {
    if (bytes.size() != 4 && bytes.size() != 8) throw std::runtime_error("cut");
    uint64_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[i]);
    return value;
  }
  static void check(std::string_view bytes, uint64_t stored) {
    uint32_t crc = 0xFFFFFFFFU;
    for (const char byte : bytes) {
      crc ^= static_cast<uint8_t>(byte);
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1 ^ 0x82F63B78U : crc >> 1;
    }
    crc = ~crc;
    const uint32_t masked = (crc >> 15 | crc << 17) + 0xA282EAD8U;
    if (masked != stored) throw std::runtime_error("checksum");
  }
  static uint64_t varint(std::string_view& bytes) {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes.at(0));
      bytes.remove_prefix(1);
      value |= static_cast<uint64_t>(byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  static std::vector<Field> fields(std::string_view bytes) {
    std::vector<Field> all;
    while (!bytes.empty()) {
      const uint64_t key = varint(bytes);
      Field field{key >> 3, 0, {}};
      size_t taken = 0;
      if ((key & 7) == 0) {
        field.value = varint(bytes);
      } else if ((key & 7) == 2) {
        taken = varint(bytes);
        field.bytes = bytes.substr(0, taken);
      } else {
        taken = (key & 7) == 1 ? 8 : 4;
        field.value = fixed(bytes.substr(0, taken));
      }
      bytes.remove_prefix(taken);
      all.push_back(field);
    }
    return all;
  }
  static ReadEvent parse_event(std::string_view bytes) {
    ReadEvent event;
    for (const auto& field : fields(bytes)) {
      if (field.number == 1) event.wall = std::bit_cast<double>(field.value);
      if (field.number == 2) event.step = static_cast<int64_t>(field.value);
      if (field.number == 3) event.file_version = field.bytes;
      if (field.number == 7) event.restart = fields(field.bytes).at(0).value == 1;
      if (field.number != 5) continue;
      for (const auto& value : fields(field.bytes)) parse_value(value.bytes, event);
    }
    return event;
  }
  static void parse_value(std::string_view bytes, ReadEvent& event) {
    std::string tag;
    for (const auto& field : fields(bytes)) {
      if (field.number == 1) tag = field.bytes;
      if (field.number == 2) event.scalars[tag] = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (field.number == 4) event.pngs[tag] = fields(field.bytes).at(3).bytes;
    }
  }
};

}  // namespace chiliad::test
