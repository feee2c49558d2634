#include "chiliad/image/encode.h"

#include <gtest/gtest.h>

#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

TEST(EncodeTest, PngComesBackAsItWas) {
  const HostArray picture = test::sloped_picture(61, 35);
  const auto back = decode(encode_png(picture), {});
  ASSERT_TRUE(back) << back.reason;
  EXPECT_EQ(test::distance(back.value->bytes(), picture.bytes()).max_abs, 0);
}

TEST(EncodeTest, SamePixelsGiveTheSameBytes) {
  const HostArray picture = test::sloped_picture(61, 35);
  EXPECT_EQ(encode_png(picture), encode_png(picture.clone()));
}

TEST(EncodeTest, JpegComesBackNear) {
  const HostArray picture = test::sloped_picture(61, 35);
  const auto back = decode(encode_jpeg(picture, 95), {});
  ASSERT_TRUE(back) << back.reason;
  // Slopes have no detail that quality 95 drops; what remains is the rounding of colours and 4:2:0.
  EXPECT_LE(test::distance(back.value->bytes(), picture.bytes()).mean_abs, 2.0);
}

TEST(EncodeTest, RefusesAQualityOutOfRange) {
  EXPECT_THROW(static_cast<void>(encode_jpeg(test::sloped_picture(8, 8), 0)), InternalError);
}

TEST(DecodeTest, BlendsOverTheBackgroundAsked) {
  const HostArray black(DType::kU8, Shape{1, 1, 3});
  const auto hide_black = test::png_chunk("tRNS", test::ByteVector(6));
  const auto back =
      decode(test::with_png_chunk(encode_png(black), hide_black), {.background = {1, 2, 3}, .limits = {}});
  ASSERT_TRUE(back) << back.reason;
  const auto pixel = back.value->as<uint8_t>();
  EXPECT_EQ((std::array{pixel[0], pixel[1], pixel[2]}), (std::array<uint8_t, 3>{1, 2, 3}));
}

}  // namespace
}  // namespace chiliad::image
