#include <gtest/gtest.h>

#include <string_view>

#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

TEST(ProbeTest, ReadsJpegSize) {
  const auto info = probe(encode_jpeg(test::sloped_picture(37, 23), 90));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->format, Format::kJpeg);
  EXPECT_EQ(info.value->width, 37);
  EXPECT_EQ(info.value->height, 23);
}

TEST(ProbeTest, ReadsPngSize) {
  const auto info = probe(encode_png(test::sloped_picture(37, 23)));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->format, Format::kPng);
  EXPECT_EQ(info.value->width, 37);
  EXPECT_EQ(info.value->height, 23);
}

TEST(ProbeTest, GivesSizeAfterOrientation) {
  const auto jpeg = test::with_exif(encode_jpeg(test::sloped_picture(37, 23), 90), test::exif_block(8));
  const auto info = probe(jpeg);
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->orientation, 8);
  EXPECT_EQ(info.value->width, 23);
  EXPECT_EQ(info.value->height, 37);
}

TEST(ProbeTest, SeesAnIccProfile) {
  const auto jpeg = test::with_jpeg_segment(encode_jpeg(test::sloped_picture(8, 8), 90), 0xe2,
                                            std::string_view("ICC_PROFILE\0\1\1", 14), bytes_of("profile"));
  const auto info = probe(jpeg);
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->flags, kIccProfile);
}

TEST(ProbeTest, SeesPngTransparency) {
  const auto chunk = test::png_chunk("tRNS", bytes_of(std::string_view("\0\1\0\2\0\3", 6)));
  const auto info = probe(test::with_png_chunk(encode_png(test::sloped_picture(8, 8)), chunk));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->flags, kAlpha);
}

TEST(ProbeTest, ReadsBmpSizeWithRowsFromTheTop) {
  test::ByteVector bmp(54);
  bmp[0] = std::byte{'B'};
  bmp[1] = std::byte{'M'};
  bmp[14] = std::byte{40};
  bmp[18] = std::byte{7};
  for (int i = 22; i < 26; ++i) bmp[static_cast<size_t>(i)] = std::byte{0xff};  // -1 rows
  const auto info = probe(bmp);
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->format, Format::kBmp);
  EXPECT_EQ(info.value->width, 7);
  EXPECT_EQ(info.value->height, 1);
}

TEST(ProbeTest, ReadsGifSize) {
  const auto info = probe(bytes_of(std::string_view("GIF89a\x05\x00\x03\x01\x00\x00\x00;", 14)));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->format, Format::kGif);
  EXPECT_EQ(info.value->width, 5);
  EXPECT_EQ(info.value->height, 259);
}

TEST(ProbeTest, ReadsLosslessWebpSize) {
  // 14 bits each of width - 1 and height - 1 after the signature byte.
  const auto info = probe(
      bytes_of(std::string_view("RIFF\x18\0\0\0WEBPVP8L\x0c\0\0\0\x2f\x04\x80\0\x10\0\0\0\0\0\0\0", 32)));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->format, Format::kWebp);
  EXPECT_EQ(info.value->width, 5);
  EXPECT_EQ(info.value->height, 3);
  EXPECT_EQ(info.value->flags, kAlpha);
}

TEST(ProbeTest, NamesWhatIsNoImage) {
  EXPECT_NE(probe(bytes_of("<!DOCTYPE html><html></html>")).reason.find("an HTML page"), std::string::npos);
  EXPECT_NE(probe(bytes_of("version https://git-lfs.github.com/spec/v1\n")).reason.find("Git LFS pointer"),
            std::string::npos);
  EXPECT_NE(probe({}).reason.find("no bytes"), std::string::npos);
}

TEST(ProbeTest, RefusesAJpegWithoutFrame) {
  EXPECT_EQ(probe(bytes_of("\xff\xd8\xff")).reason, "jpeg: byte 3: file ends before any frame");
}

TEST(DecodeTest, SaysThatBmpIsNotSupported) {
  std::vector<std::byte> bytes(26);
  bytes[0] = std::byte{'B'};
  bytes[1] = std::byte{'M'};
  bytes[14] = std::byte{40};
  bytes[18] = bytes[22] = std::byte{2};
  EXPECT_EQ(decode(bytes, {}).reason, "bmp: unsupported format. Convert the picture to PNG");
}

}  // namespace
}  // namespace chiliad::image
