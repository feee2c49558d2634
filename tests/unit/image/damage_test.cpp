#include <gtest/gtest.h>

#include "chiliad/base/rng.h"
#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

std::span<const std::byte> cut(const test::ByteVector& file, size_t size) {
  return std::span(file).first(size);
}

TEST(DamageTest, EveryCutOfAPngIsRefused) {
  const auto png = encode_png(test::sloped_picture(33, 17));
  constexpr size_t kIend = 12;  // which may be missing: all rows are there
  for (size_t size = 0; size < png.size() - kIend; ++size) EXPECT_FALSE(decode(cut(png, size), {})) << size;
  EXPECT_TRUE(decode(cut(png, png.size() - kIend), {}));
}

TEST(DamageTest, EveryCutOfAJpegIsRefused) {
  const auto jpeg = encode_jpeg(test::sloped_picture(33, 17), 90);
  constexpr size_t kEndMarker = 2;
  constexpr size_t kLastBits = 1;  // of which some only fill the byte
  for (size_t size = 0; size < jpeg.size() - kEndMarker - kLastBits; ++size) {
    EXPECT_FALSE(decode(cut(jpeg, size), {})) << size;
  }
  EXPECT_TRUE(decode(cut(jpeg, jpeg.size() - kEndMarker), {}));
}

/// Whatever comes of it, an outcome has either pixels or a reason.
void flip_bits(const test::ByteVector& sound, uint64_t seed) {
  SCOPED_TRACE(seed);
  Rng rng(seed);
  for (int step = 0; step < 400; ++step) {
    auto bytes = sound;
    bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    const auto outcome = decode(bytes, {.background = {}, .limits = {.max_pixels = 1 << 22}});
    EXPECT_NE(outcome.value.has_value(), !outcome.reason.empty());
  }
}

TEST(DamageTest, FlippedBitsOfAPngHaveAnOutcome) {
  flip_bits(encode_png(test::sloped_picture(33, 17)), 1);
}
TEST(DamageTest, FlippedBitsOfAJpegHaveAnOutcome) {
  flip_bits(encode_jpeg(test::sloped_picture(33, 17), 90), 2);
}

TEST(DamageTest, AWrongChecksumOfTransparencyIsRefused) {
  auto chunk = test::png_chunk("tRNS", test::ByteVector(6));
  chunk.back() ^= std::byte{1};
  const auto outcome = decode(test::with_png_chunk(encode_png(test::sloped_picture(8, 8)), chunk), {});
  EXPECT_EQ(outcome.reason, "png: byte 33: tRNS: wrong CRC");
}

TEST(DamageTest, AnUnknownCriticalChunkIsRefused) {
  const auto chunk = test::png_chunk("ABCD", {});
  const auto outcome = decode(test::with_png_chunk(encode_png(test::sloped_picture(8, 8)), chunk), {});
  EXPECT_EQ(outcome.reason, "png: byte 33: unknown critical chunk ABCD");
}

}  // namespace
}  // namespace chiliad::image
