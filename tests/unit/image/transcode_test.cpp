#include "chiliad/image/transcode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/image/image.h"
#include "chiliad/io/file.h"
#include "tests/support/kits.h"

namespace chiliad::image {
namespace {

std::vector<std::byte> hard_file(const char* name) {
  return io::read_file(test::hard_files_kit() / "images" / name, 1 << 24);
}

class TranscodeTest : public ::testing::TestWithParam<const char*> {};

TEST_P(TranscodeTest, KeepsEveryPixel) {
  const auto before = hard_file(GetParam());
  const auto after = to_baseline_jpeg(before);
  ASSERT_TRUE(after) << after.reason;
  const auto pixels = decode(before, {});
  const auto again = decode(*after.value, {});
  ASSERT_TRUE(pixels && again) << pixels.reason << again.reason;
  EXPECT_TRUE(std::ranges::equal(pixels.value->bytes(), again.value->bytes()));
}

TEST_P(TranscodeTest, IsNoLongerProgressive) {
  const auto after = to_baseline_jpeg(hard_file(GetParam()));
  ASSERT_TRUE(after) << after.reason;
  EXPECT_EQ(probe(*after.value).value->flags & kProgressive, 0);
}

INSTANTIATE_TEST_SUITE_P(Files, TranscodeTest,
                         ::testing::Values("jpeg_progressive_plain.jpg", "jpeg_plain.jpg",
                                           "exif_orientation_6.jpg", "jpeg_cmyk_adobe.jpg",
                                           "jpeg_cmyk_no_adobe.jpg", "jpeg_ycck_adobe.jpg",
                                           "jpeg_rgb_app14_0.jpg", "icc_adobe_rgb.jpg"),
                         [](const auto& file) {
                           std::string name = file.param;
                           std::erase_if(name, [](char c) { return c == '_' || c == '.'; });
                           return name;
                         });

TEST(TranscodeOfOthersTest, IsRefused) {
  EXPECT_FALSE(to_baseline_jpeg(hard_file("png_1bit.png")));
  EXPECT_FALSE(to_baseline_jpeg(hard_file("jpeg_cut_half.jpg")));
  EXPECT_FALSE(to_baseline_jpeg({}));
}

TEST(TranscodeOfOthersTest, SurvivesEveryCut) {
  const auto whole = hard_file("jpeg_progressive_plain.jpg");
  for (size_t size = 0; size < whole.size(); size += 37)
    static_cast<void>(to_baseline_jpeg(std::span(whole).first(size)));
}

}  // namespace
}  // namespace chiliad::image
