#include <gtest/gtest.h>

#include "chiliad/base/rng.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

using Bytes = test::ByteVector;

struct GifParts {
  int screen_width = 4;
  int screen_height = 3;
  int left = 0;
  int top = 0;
  int width = 4;
  int height = 3;
  int transparent = -1;
  bool interlaced = false;
  std::vector<uint8_t> indices{0, 1, 2, 3, 3, 2, 1, 0, 1, 1, 2, 2};
};

/// Codes without compression: a clear code before every two pixels keeps them at three bits.
void put_codes(const std::vector<uint8_t>& indices, Bytes& out) {
  std::vector<uint8_t> data;
  uint32_t held = 0;
  int num_bits = 0;
  const auto put = [&](uint32_t code) {
    held |= code << num_bits;
    for (num_bits += 3; num_bits >= 8; num_bits -= 8, held >>= 8) data.push_back(static_cast<uint8_t>(held));
  };
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i % 2 == 0) put(4);
    put(indices[i]);
  }
  put(5);
  if (num_bits > 0) data.push_back(static_cast<uint8_t>(held));
  out.push_back(std::byte{2});
  out.push_back(static_cast<std::byte>(data.size()));
  for (const uint8_t byte : data) out.push_back(static_cast<std::byte>(byte));
  out.push_back(std::byte{0});
}

/// Colour i of the table is (40 i, 40 i + 1, 40 i + 2).
Bytes gif(const GifParts& parts) {
  Bytes out;
  const auto put = [&](std::initializer_list<int> bytes) {
    for (const int byte : bytes) out.push_back(static_cast<std::byte>(byte));
  };
  put({'G', 'I', 'F', '8', '9', 'a', parts.screen_width, 0, parts.screen_height, 0, 0x81, 0, 0});
  for (int i = 0; i < 4; ++i) put({40 * i, 40 * i + 1, 40 * i + 2});
  if (parts.transparent >= 0) put({0x21, 0xf9, 4, 1, 0, 0, parts.transparent, 0});
  put({0x2c, parts.left, 0, parts.top, 0, parts.width, 0, parts.height, 0, parts.interlaced ? 0x40 : 0});
  put_codes(parts.indices, out);
  put({0x3b});
  return out;
}

/// The red samples; they name the colours.
std::vector<int> reds(const Bytes& file) {
  const auto picture = decode(file, {});
  EXPECT_TRUE(picture) << picture.reason;
  std::vector<int> found;
  if (!picture) return found;
  const auto samples = picture.value->as<uint8_t>();
  for (size_t i = 0; i < samples.size(); i += 3) found.push_back(samples[i]);
  return found;
}

TEST(GifTest, GivesTheColoursOfTheTable) {
  EXPECT_EQ(reds(gif({})), (std::vector<int>{0, 40, 80, 120, 120, 80, 40, 0, 40, 40, 80, 80}));
}

TEST(GifTest, TransparentPixelsAreTheBackground) {
  EXPECT_EQ(reds(gif({.transparent = 1})),
            (std::vector<int>{0, 255, 80, 120, 120, 80, 255, 0, 255, 255, 80, 80}));
}

TEST(GifTest, WhatTheFrameDoesNotCoverIsTheBackground) {
  EXPECT_EQ(reds(gif({.left = 1, .top = 1, .width = 2, .height = 1, .indices = {2, 3}})),
            (std::vector<int>{255, 255, 255, 255, 255, 80, 120, 255, 255, 255, 255, 255}));
}

TEST(GifTest, AFrameBeyondTheScreenWidensIt) {
  const auto file = gif({.screen_width = 1, .screen_height = 1});
  EXPECT_EQ(reds(file).size(), 12U);
  EXPECT_EQ(probe(file).value->width, 4);
}

TEST(GifTest, PutsInterlacedRowsInOrder) {
  // Five rows of one pixel, stored as rows 0, 4, 2, 1, 3.
  EXPECT_EQ(reds(gif({.screen_width = 1,
                      .screen_height = 5,
                      .width = 1,
                      .height = 5,
                      .interlaced = true,
                      .indices = {0, 1, 2, 3, 3}})),
            (std::vector<int>{0, 120, 80, 120, 40}));
}

TEST(GifTest, EveryCutBeforeTheLastCodesIsRefused) {
  const auto file = gif({});
  constexpr size_t kEnd = 3;  // the rest of the end code, the empty block and the trailer
  for (size_t size = 0; size < file.size() - kEnd; ++size)
    EXPECT_FALSE(decode(std::span(file).first(size), {})) << size;
}

TEST(GifTest, FlippedBitsHaveAnOutcome) {
  const auto sound = gif({.transparent = 2});
  Rng rng(3);
  for (int step = 0; step < 2000; ++step) {
    auto bytes = sound;
    bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    const auto outcome = decode(bytes, {.background = {}, .limits = {.max_pixels = 1 << 20}});
    EXPECT_NE(outcome.value.has_value(), !outcome.reason.empty());
  }
}

TEST(GifTest, RefusesABadCode) {
  auto file = gif({});
  file[file.size() - 7] = std::byte{0xff};  // a code that nothing stands for yet
  EXPECT_NE(decode(file, {}).reason.find("bad code"), std::string::npos) << decode(file, {}).reason;
}

}  // namespace
}  // namespace chiliad::image
