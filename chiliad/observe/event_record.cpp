#include "chiliad/observe/event_record.h"

#include <array>
#include <bit>

namespace chiliad::observe {
namespace {

// Field numbers of tensorflow's event.proto and summary.proto.
constexpr int kEventWallTime = 1;
constexpr int kEventStep = 2;
constexpr int kEventFileVersion = 3;
constexpr int kEventSummary = 5;
constexpr int kEventSessionLog = 7;
constexpr int kSessionStatus = 1;
constexpr int kSummaryValue = 1;
constexpr int kValueTag = 1;
constexpr int kValueSimple = 2;
constexpr int kValueImage = 4;
constexpr int kImageHeight = 1;
constexpr int kImageWidth = 2;
constexpr int kImageColors = 3;
constexpr int kImagePng = 4;

constexpr uint64_t kSessionStart = 1;
constexpr uint64_t kRgb = 3;

constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

constexpr std::array<uint32_t, 256> make_crc_table() {
  constexpr uint32_t kReversedPolynomial = 0x82F63B78U;
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1U) != 0 ? kReversedPolynomial : 0U);
    table[byte] = crc;
  }
  return table;
}

/// A protobuf message that grows field by field.
class Message {
 public:
  void add(int field, uint64_t value) {
    begin(field, kVarint);
    varint(value);
  }
  void add(int field, double value) {
    begin(field, kFixed64);
    little_endian(std::bit_cast<uint64_t>(value), 8);
  }
  void add(int field, float value) {
    begin(field, kFixed32);
    little_endian(std::bit_cast<uint32_t>(value), 4);
  }
  void add(int field, std::string_view bytes) {
    begin(field, kBytes);
    varint(bytes.size());
    bytes_ += bytes;
  }
  void add(int field, const Message& message) { add(field, std::string_view(message.bytes_)); }
  void little_endian(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i));
  }
  [[nodiscard]] std::string take() && { return std::move(bytes_); }

 private:
  void begin(int field, int wire_type) { varint(static_cast<uint64_t>(field << 3 | wire_type)); }
  void varint(uint64_t value) {
    for (; value >= 128; value >>= 7) bytes_ += static_cast<char>(value | 128);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

Message make_event(double wall, int64_t step) {
  Message event;
  event.add(kEventWallTime, wall);
  if (step != 0) event.add(kEventStep, static_cast<uint64_t>(step));
  return event;
}

/// Big-endian number of a PNG's header; 0 where the file is shorter than that.
uint64_t png_number(std::span<const std::byte> png, size_t at) {
  if (png.size() < at + 4) return 0;
  uint64_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint64_t>(png[at + i]);
  return value;
}

uint32_t masked_crc(std::string_view bytes) {
  constexpr uint32_t kMaskDelta = 0xA282EAD8U;
  return std::rotr(crc32c(bytes), 15) + kMaskDelta;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr auto kTable = make_crc_table();
  uint32_t crc = ~0U;
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFFU];
  return ~crc;
}

std::string version_event(double wall) {
  Message event = make_event(wall, 0);
  event.add(kEventFileVersion, std::string_view("brain.Event:2"));
  return std::move(event).take();
}

std::string restart_event(double wall, int64_t step) {
  Message log;
  log.add(kSessionStatus, kSessionStart);
  Message event = make_event(wall, step);
  event.add(kEventSessionLog, log);
  return std::move(event).take();
}

std::string scalars_event(double wall, int64_t step, const std::vector<Scalar>& scalars) {
  Message summary;
  for (const auto& scalar : scalars) {
    Message value;
    value.add(kValueTag, std::string_view(scalar.tag));
    value.add(kValueSimple, static_cast<float>(scalar.value));
    summary.add(kSummaryValue, value);
  }
  Message event = make_event(wall, step);
  event.add(kEventSummary, summary);
  return std::move(event).take();
}

std::string picture_event(double wall, int64_t step, const Picture& picture) {
  Message image;
  constexpr size_t kWidthAt = 16;
  constexpr size_t kHeightAt = 20;
  image.add(kImageHeight, png_number(picture.png, kHeightAt));
  image.add(kImageWidth, png_number(picture.png, kWidthAt));
  image.add(kImageColors, kRgb);
  image.add(kImagePng,
            std::string_view(reinterpret_cast<const char*>(picture.png.data()), picture.png.size()));
  Message value;
  value.add(kValueTag, std::string_view(picture.tag));
  value.add(kValueImage, image);
  Message summary;
  summary.add(kSummaryValue, value);
  Message event = make_event(wall, step);
  event.add(kEventSummary, summary);
  return std::move(event).take();
}

std::string frame_record(std::string_view event) {
  Message length;
  length.little_endian(event.size(), 8);
  const std::string header = std::move(length).take();
  Message record;
  record.little_endian(event.size(), 8);
  record.little_endian(masked_crc(header), 4);
  Message check;
  check.little_endian(masked_crc(event), 4);
  return std::move(record).take().append(event) + std::move(check).take();
}

}  // namespace chiliad::observe
