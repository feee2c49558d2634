#include <gtest/gtest.h>

#include <cstdlib>

#include "chiliad/image/encode.h"
#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

class PlantedBug {
 public:
  explicit PlantedBug(const char* name) { setenv("CHILIAD_PLANTED_BUG", name, 1); }
  ~PlantedBug() { unsetenv("CHILIAD_PLANTED_BUG"); }
  PlantedBug(const PlantedBug&) = delete;
  PlantedBug& operator=(const PlantedBug&) = delete;
};

HostArray decoded(const test::ByteVector& bytes) {
  auto outcome = decode(bytes, {});
  EXPECT_TRUE(outcome) << outcome.reason;
  return std::move(*outcome.value);
}

/// The check that unit and parity tests make of a turned picture.
bool is_turned(const HostArray& turned, const HostArray& stored) {
  const int64_t height = stored.shape()[0];
  if (turned.shape() != Shape{stored.shape()[1], height, 3}) return false;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < stored.shape()[1]; ++x) {
      const int64_t from = (y * stored.shape()[1] + x) * 3;
      const int64_t to = (x * height + height - 1 - y) * 3;
      for (int64_t c = 0; c < 3; ++c) {
        if (turned.data()[to + c] != stored.data()[from + c]) return false;
      }
    }
  }
  return true;
}

TEST(ExifMutantTest, JpegCheckCatchesIgnoredOrientation) {
  const auto plain = encode_jpeg(test::sloped_picture(40, 24), 90);
  const auto turned = test::with_exif(plain, test::exif_block(6));
  ASSERT_TRUE(is_turned(decoded(turned), decoded(plain)));
  const PlantedBug bug("exif_ignored");
  EXPECT_FALSE(is_turned(decoded(turned), decoded(plain)));
}

TEST(ExifMutantTest, PngCheckCatchesIgnoredOrientation) {
  const auto plain = encode_png(test::sloped_picture(40, 24));
  const auto turned = test::with_png_chunk(plain, test::png_chunk("eXIf", test::exif_block(6)));
  ASSERT_TRUE(is_turned(decoded(turned), decoded(plain)));
  const PlantedBug bug("exif_ignored");
  EXPECT_FALSE(is_turned(decoded(turned), decoded(plain)));
}

}  // namespace
}  // namespace chiliad::image
