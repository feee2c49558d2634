#include "chiliad/image/resize.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"
#include "tests/support/sha256.h"

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

/// SHA-256 of what Pillow 13.0.0 gives for the sloped picture.
struct PillowDigests {
  Filter filter;
  const char* fractional_box;  ///< 40 x 30, box (3.3, 2.1, 37.9, 28.4), to 11 x 9
  const char* down_first;      ///< 20 x 60 to 18 x 10
};
constexpr PillowDigests kPillow[] = {
    {Filter::kBox, "f54b384f23a7b1f0bf5bd91f2cd47cf0ef91eb4adafb9e96fed945a6091a6811",
     "8f1378fb575d074fc5cc215e23878059b3cd563bb60e32c018a7bd3f6fea2834"},
    {Filter::kBilinear, "f60e24840ed58924993fa3bce1d6c6d672f664164278b55069dc4d2f1e3e5481",
     "2902f670679fa0be04b716a50da06c7084a6c9166bb20c69e57a8727cbbf7c09"},
    {Filter::kHamming, "61f2234b6c458b69256ea75733d6a932b50485ffc18f32dfd7a6dde7f1c22880",
     "49527a2e869808f2a56ee2ab24de734d888dff88a42c1ffccb5b1cdb38ea2054"},
    {Filter::kBicubic, "0f43eb89cb735faac56a18e5cf1df1d31a7cd5c86870bbbf32c488501892c50f",
     "256c647be6056218501258416608f581eef3f73f3370f82ede8d370db3afbb20"},
    {Filter::kLanczos, "03fae7ebc2459e9187533d763aef8e099d44e227d6c26fbbdcf2b9068c9f9deb",
     "021ac987bb9ac1c31492283186e363b084955e22a3ff1277f21c8fd3c4dfd6c1"},
};

TEST(ResizeTest, FractionalBoxEqualsPillow) {
  for (const auto& expected : kPillow) {
    const auto resized = resize(test::sloped_picture(40, 30), 11, 9, expected.filter, {3.3, 2.1, 37.9, 28.4});
    EXPECT_EQ(test::sha256_hex(resized.bytes()), expected.fractional_box)
        << static_cast<int>(expected.filter);
  }
}

TEST(ResizeTest, OrderOfPassesEqualsPillow) {
  for (const auto& expected : kPillow) {
    const auto resized = resize(test::sloped_picture(20, 60), 18, 10, expected.filter);
    EXPECT_EQ(test::sha256_hex(resized.bytes()), expected.down_first) << static_cast<int>(expected.filter);
  }
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
