#include <gtest/gtest.h>

#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

TEST(LimitsTest, AllowsExactlyTheCap) {
  const auto png = encode_png(test::sloped_picture(20, 10));
  EXPECT_TRUE(probe(png, {.max_pixels = 200, .max_bytes = 600}));
  EXPECT_TRUE(decode(png, {.background = {}, .limits = {.max_pixels = 200, .max_bytes = 600}}));
}

TEST(LimitsTest, RefusesOnePixelMore) {
  const Limits limits{.max_pixels = 199};
  const auto png = encode_png(test::sloped_picture(20, 10));
  EXPECT_EQ(probe(png, limits).reason, "header: too many pixels: expected at most 199, got 20 x 10");
  EXPECT_EQ(decode(png, {.background = {}, .limits = limits}).reason,
            "png: header: too many pixels: expected at most 199, got 20 x 10");
}

TEST(LimitsTest, RefusesOneByteMore) {
  const auto jpeg = encode_jpeg(test::sloped_picture(20, 10), 90);
  EXPECT_FALSE(decode(jpeg, {.background = {}, .limits = {.max_bytes = 599}}));
}

/// The JPEG with another size in its frame header.
test::ByteVector resized_header(test::ByteVector jpeg, uint16_t width, uint16_t height) {
  for (size_t at = 2; at + 9 < jpeg.size(); ++at) {
    if (jpeg[at] != std::byte{0xff} || jpeg[at + 1] != std::byte{0xc0}) continue;
    jpeg[at + 5] = static_cast<std::byte>(height >> 8);
    jpeg[at + 6] = static_cast<std::byte>(height);
    jpeg[at + 7] = static_cast<std::byte>(width >> 8);
    jpeg[at + 8] = static_cast<std::byte>(width);
    break;
  }
  return jpeg;
}

TEST(LimitsTest, RefusesAJpegThatClaimsMoreThanItsBytesCanHold) {
  const auto jpeg = resized_header(encode_jpeg(test::sloped_picture(20, 10), 90), 12'000, 12'000);
  ASSERT_TRUE(probe(jpeg));
  EXPECT_NE(decode(jpeg, {}).reason.find("do not fit into"), std::string::npos);
}

TEST(LimitsTest, RefusesAPngThatClaimsMoreThanItsBytesCanHold) {
  const auto plain = encode_png(test::sloped_picture(20, 10));
  test::ByteVector ihdr(plain.begin() + 16, plain.begin() + 29);
  ihdr[2] = std::byte{0x20};  // width and height from 20 and 10 to over 8192
  ihdr[6] = std::byte{0x20};
  test::ByteVector png(plain.begin(), plain.begin() + 8);
  for (const auto& part :
       {test::png_chunk("IHDR", ihdr), test::ByteVector(plain.begin() + 33, plain.end())}) {
    png.insert(png.end(), part.begin(), part.end());
  }
  ASSERT_TRUE(probe(png));
  EXPECT_NE(decode(png, {}).reason.find("do not fit into"), std::string::npos);
}

}  // namespace
}  // namespace chiliad::image
