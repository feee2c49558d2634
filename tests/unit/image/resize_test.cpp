#include "chiliad/image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

constexpr Filter kFilters[] = {Filter::kBox, Filter::kBilinear, Filter::kHamming, Filter::kBicubic,
                               Filter::kLanczos};

int max_apart(const HostArray& a, const HostArray& b) {
  EXPECT_EQ(a.shape(), b.shape());
  return a.shape() == b.shape() ? test::distance(a.bytes(), b.bytes()).max_abs : 255;
}

TEST(ResizeTest, SameSizeIsACopy) {
  const HostArray picture = test::sloped_picture(31, 17);
  for (const Filter filter : kFilters) EXPECT_EQ(max_apart(resize(picture, 31, 17, filter), picture), 0);
}

TEST(ResizeTest, KeepsOneColour) {
  HostArray picture(DType::kU8, Shape{19, 23, 3});
  std::fill(picture.bytes().begin(), picture.bytes().end(), std::byte{201});
  for (const Filter filter : kFilters) {
    const HostArray resized = resize(picture, 40, 7, filter);
    EXPECT_TRUE(std::all_of(resized.bytes().begin(), resized.bytes().end(),
                            [](std::byte b) { return b == std::byte{201}; }));
  }
}

TEST(ResizeTest, BoxOfWholePixelsEqualsCropThenResizeWithoutOvershoot) {
  // Box at a whole factor reads no pixel outside of the box.
  const HostArray picture = test::sloped_picture(40, 30);
  const HostArray by_box = resize(picture, 8, 6, Filter::kBox, {4, 3, 36, 27});
  EXPECT_EQ(max_apart(by_box, resize(crop(picture, 4, 3, 32, 24), 8, 6, Filter::kBox)), 0);
}

TEST(ResizeTest, MirroredInputGivesMirroredOutput) {
  const HostArray picture = test::sloped_picture(33, 9);
  const HostArray a = flip_horizontal(resize(picture, 12, 9, Filter::kBilinear));
  const HostArray b = resize(flip_horizontal(picture), 12, 9, Filter::kBilinear);
  EXPECT_LE(max_apart(a, b), 1);  // halves are rounded up on both sides
}

TEST(ResizeTest, RefusesEmptySizesAndBoxesOutside) {
  const HostArray picture = test::sloped_picture(8, 8);
  EXPECT_THROW(static_cast<void>(resize(picture, 0, 4, Filter::kBox)), InternalError);
  EXPECT_THROW(static_cast<void>(resize(picture, 4, 4, Filter::kBox, {0, 0, 8.5, 8})), InternalError);
  EXPECT_THROW(static_cast<void>(resize(picture, 4, 4, Filter::kBox, {5, 0, 5, 8})), InternalError);
}

TEST(CropTest, TakesThePartAsked) {
  const HostArray picture = test::sloped_picture(9, 5);
  const HostArray part = crop(picture, 2, 1, 3, 2);
  ASSERT_EQ(part.shape(), (Shape{2, 3, 3}));
  for (int64_t y = 0; y < 2; ++y) {
    EXPECT_TRUE(
        std::equal(part.data() + y * 9, part.data() + y * 9 + 9, picture.data() + ((y + 1) * 9 + 2) * 3));
  }
}

TEST(CropTest, RefusesAPartOutside) {
  EXPECT_THROW(static_cast<void>(crop(test::sloped_picture(9, 5), 7, 0, 3, 2)), InternalError);
}

TEST(FlipTest, TwiceIsTheSame) {
  const HostArray picture = test::sloped_picture(9, 5);
  EXPECT_EQ(max_apart(flip_horizontal(flip_horizontal(picture)), picture), 0);
}

TEST(FlipTest, PutsTheLastPixelFirst) {
  const HostArray picture = test::sloped_picture(9, 5);
  EXPECT_TRUE(std::equal(picture.data() + 24, picture.data() + 27, flip_horizontal(picture).data()));
}

TEST(CoverTest, GivesTheSizeAskedForAnyShape) {
  for (int32_t width = 1; width < 40; width += 7) {
    for (int32_t height = 1; height < 40; height += 6) {
      const HostArray covered = cover(test::sloped_picture(width, height), 13, 22, Filter::kBilinear);
      EXPECT_EQ(covered.shape(), (Shape{22, 13, 3})) << width << " x " << height;
    }
  }
}

TEST(CoverTest, PlacesTheCut) {
  const HostArray picture = test::sloped_picture(40, 10);
  EXPECT_EQ(max_apart(cover(picture, 10, 10, Filter::kBox, 0.0), crop(picture, 0, 0, 10, 10)), 0);
  EXPECT_EQ(max_apart(cover(picture, 10, 10, Filter::kBox, 1.0), crop(picture, 30, 0, 10, 10)), 0);
}

}  // namespace
}  // namespace chiliad::image
