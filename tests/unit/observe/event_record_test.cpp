#include "chiliad/observe/event_record.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace chiliad::observe {
namespace {

constexpr double kWall = 1700000000.5;

std::string hex(const std::string& bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const char byte : bytes) {
    text += kDigits[static_cast<uint8_t>(byte) >> 4];
    text += kDigits[static_cast<uint8_t>(byte) & 15];
  }
  return text;
}

// The golden records come from the protobuf messages and the record writer of the Python package tensorboard.

TEST(EventRecordTest, ChecksumIsCrc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
}

TEST(EventRecordTest, VersionIsGolden) {
  EXPECT_EQ(hex(frame_record(version_event(kWall))),
            "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b353110");
}

TEST(EventRecordTest, RestartIsGolden) {
  EXPECT_EQ(hex(frame_record(restart_event(kWall, 301))),
            "100000000000000095fbfe180900002040fc54d94110ad023a020801596f3f79");
}

TEST(EventRecordTest, ScalarsAreGolden) {
  const auto event = scalars_event(
      kWall, 301, {{"train/loss", 0.25}, {"speed/mfu", std::numeric_limits<double>::infinity()}});
  EXPECT_EQ(
      hex(frame_record(event)),
      "33000000000000000ca720560900002040fc54d94110ad022a250a110a0a747261696e2f6c6f7373150000803e0a100a0973"
      "706565642f6d6675150000807f62f68c15");
}

TEST(EventRecordTest, PictureIsGolden) {
  // The head of a file of 300 x 2.
  const std::string png("\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\x2c\0\0\0\x02", 24);
  const Picture picture{"samples/grid", std::as_bytes(std::span(png))};
  EXPECT_EQ(hex(frame_record(picture_event(kWall, 5, picture))),
            "40000000000000002817f4950900002040fc54d94110052a330a310a0c73616d706c65732f677269"
            "642221080210ac021803221889504e470d0a1a0a0000000d494844520000012c0000000217aa39b2");
}

}  // namespace
}  // namespace chiliad::observe
