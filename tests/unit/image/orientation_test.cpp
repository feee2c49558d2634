#include <gtest/gtest.h>

#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

constexpr int64_t kWidth = 7;
constexpr int64_t kHeight = 4;

struct Place {
  int64_t x = 0;
  int64_t y = 0;
};

/// Where the stored pixel (x, y) belongs, from the wording of the EXIF standard: what row 0 and column 0
/// show.
Place shown_at(int orientation, int64_t x, int64_t y) {
  const int64_t right = kWidth - 1 - x;
  const int64_t bottom = kHeight - 1 - y;
  switch (orientation) {
    case 2:
      return {right, y};  // row 0 top, column 0 right
    case 3:
      return {right, bottom};
    case 4:
      return {x, bottom};
    case 5:
      return {y, x};  // row 0 left, column 0 top
    case 6:
      return {bottom, x};
    case 7:
      return {bottom, right};
    case 8:
      return {y, right};
    default:
      return {x, y};
  }
}

class OrientationTest : public testing::TestWithParam<int> {};

TEST_P(OrientationTest, PutsEveryPixelInItsPlace) {
  const HostArray stored = test::sloped_picture(kWidth, kHeight);
  const auto exif = test::png_chunk("eXIf", test::exif_block(static_cast<uint16_t>(GetParam()), false));
  const auto outcome = decode(test::with_png_chunk(encode_png(stored), exif), {});
  ASSERT_TRUE(outcome) << outcome.reason;
  const HostArray& shown = *outcome.value;
  const int64_t wide = GetParam() >= 5 ? kHeight : kWidth;
  ASSERT_EQ(shown.shape(), (Shape{kWidth * kHeight / wide, wide, 3}));
  for (int64_t y = 0; y < kHeight; ++y) {
    for (int64_t x = 0; x < kWidth; ++x) {
      const Place to = shown_at(GetParam(), x, y);
      for (int64_t c = 0; c < 3; ++c) {
        ASSERT_EQ(shown.data()[(to.y * wide + to.x) * 3 + c], stored.data()[(y * kWidth + x) * 3 + c])
            << x << " " << y;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, OrientationTest, testing::Range(1, 9));

uint8_t orientation_of(const test::ByteVector& exif) {
  const auto info = probe(test::with_exif(encode_jpeg(test::sloped_picture(8, 8), 90), exif));
  EXPECT_TRUE(info) << info.reason;
  return info ? info.value->orientation : uint8_t{0};
}

TEST(ExifTest, ReadsBothByteOrders) {
  EXPECT_EQ(orientation_of(test::exif_block(6, true)), 6);
  EXPECT_EQ(orientation_of(test::exif_block(6, false)), 6);
}

TEST(ExifTest, CountsValuesOutOfRangeAsOne) {
  EXPECT_EQ(orientation_of(test::exif_block(0)), 1);
  EXPECT_EQ(orientation_of(test::exif_block(9)), 1);
}

TEST(ExifTest, TakesEveryCutWithoutFailing) {
  const auto whole = test::exif_block(6);
  constexpr size_t kEntryEnd = 8 + 2 + 12;
  for (size_t size = 0; size < kEntryEnd; ++size) {
    EXPECT_EQ(orientation_of({whole.begin(), whole.begin() + static_cast<ptrdiff_t>(size)}), 1) << size;
  }
  EXPECT_EQ(orientation_of({whole.begin(), whole.begin() + kEntryEnd}), 6);
}

TEST(ExifTest, IgnoresAnotherType) {
  auto block = test::exif_block(6);
  block[12] = std::byte{2};  // ASCII
  EXPECT_EQ(orientation_of(block), 1);
}

TEST(ExifTest, IgnoresADirectoryPastTheEnd) {
  auto block = test::exif_block(6);
  block[7] = std::byte{0xff};
  EXPECT_EQ(orientation_of(block), 1);
}

TEST(ExifTest, IgnoresAPngBlockWithAWrongChecksum) {
  auto exif = test::png_chunk("eXIf", test::exif_block(6));
  exif.back() ^= std::byte{1};
  const auto info = probe(test::with_png_chunk(encode_png(test::sloped_picture(8, 4)), exif));
  ASSERT_TRUE(info) << info.reason;
  EXPECT_EQ(info.value->orientation, 1);
}

}  // namespace
}  // namespace chiliad::image
