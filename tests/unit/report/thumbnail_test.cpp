#include "chiliad/report/thumbnail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "chiliad/base/rng.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_set.h"
#include "tests/support/safetensors_lite.h"
#include "tests/support/temp_dir.h"

namespace chiliad::report {
namespace {

using testing::HasSubstr;

/// A noisy picture, so that its rows take bytes: the upper half light, the lower half dark, nowhere black.
HostArray two_halves(int32_t width, int32_t height) {
  HostArray picture(DType::kU8, Shape{height, width, 3});
  auto samples = picture.as<uint8_t>();
  Rng rng(3);
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool is_upper = i < samples.size() / 2;
    samples[i] = static_cast<uint8_t>((is_upper ? 180 : 40) + rng.below(31));
  }
  return picture;
}

/// One picture, indexed while it was whole.
class ThumbnailTest : public testing::Test {
 protected:
  void put(const std::string& name, std::span<const std::byte> bytes) {
    path_ = folder_.path() / "pictures" / name;
    std::filesystem::create_directories(path_.parent_path());
    io::write_atomic(path_, bytes);
    std::ofstream(path_.parent_path() / "a.txt") << "words";
    test::index_pictures(path_.parent_path(), folder_.path() / "index");
    index_.emplace(index::Index::open(folder_.path() / "index"));
  }
  [[nodiscard]] Thumbnail thumbnail(int32_t side = 64) const {
    return read_thumbnail(*index_, index_->shards().at(0), *index_->image_part(0), side);
  }
  [[nodiscard]] HostArray shown() const {
    const auto made = thumbnail();
    auto picture = image::decode(made.png, {});
    EXPECT_TRUE(picture) << made.problem;
    return picture ? std::move(*picture.value) : HostArray();
  }
  /// Mean of a row's samples, of the picture shown.
  [[nodiscard]] static double row_mean(const HostArray& picture, int64_t row) {
    const auto width = static_cast<size_t>(picture.shape()[1] * 3);
    const auto samples = picture.as<uint8_t>().subspan(static_cast<size_t>(row) * width, width);
    double sum = 0.0;
    for (const uint8_t sample : samples) sum += sample;
    return sum / static_cast<double>(width);
  }
  void flip_byte(double where) const {
    auto bytes = test::read_bytes_lite(path_);
    bytes[static_cast<size_t>(static_cast<double>(bytes.size()) * where)] ^= std::byte{0x5a};
    io::write_atomic(path_, bytes);
  }
  void cut(double where) const {
    const auto size = static_cast<double>(std::filesystem::file_size(path_));
    std::filesystem::resize_file(path_, static_cast<uintmax_t>(size * where));
  }

  test::TempDir folder_;
  std::filesystem::path path_;
  std::optional<index::Index> index_;
};

TEST_F(ThumbnailTest, AWholePictureIsScaledToItsSide) {
  put("a.png", image::encode_png(two_halves(200, 100)));
  EXPECT_EQ(thumbnail().problem, "");
  EXPECT_EQ(thumbnail().format, image::Format::kPng);
  EXPECT_EQ(shown().shape(), Shape({32, 64, 3}));
}

TEST_F(ThumbnailTest, ASmallPictureStaysAsItIs) {
  put("a.png", image::encode_png(two_halves(20, 10)));
  EXPECT_EQ(shown().shape(), Shape({10, 20, 3}));
}

TEST_F(ThumbnailTest, AnExtremeShapeKeepsAPixel) {
  put("a.png", image::encode_png(two_halves(3000, 2)));
  EXPECT_EQ(shown().shape(), Shape({1, 64, 3}));
}

TEST_F(ThumbnailTest, TheUpperPartOfACutPngIsShown) {
  put("a.png", image::encode_png(two_halves(128, 128)));
  cut(0.6);
  EXPECT_THAT(thumbnail().problem, HasSubstr("the file ends after"));
  const HostArray picture = shown();
  ASSERT_EQ(picture.shape(), Shape({64, 64, 3}));
  EXPECT_GT(row_mean(picture, 0), 150.0);
  EXPECT_GT(row_mean(picture, 30), 100.0);
  EXPECT_LT(row_mean(picture, 62), 1.0);
}

TEST_F(ThumbnailTest, TheUpperPartOfAPngWithAFlippedByteIsShown) {
  put("a.png", image::encode_png(two_halves(128, 128)));
  flip_byte(0.5);
  EXPECT_NE(thumbnail().problem, "");
  const HostArray picture = shown();
  EXPECT_GT(row_mean(picture, 0), 150.0);
  EXPECT_GT(row_mean(picture, 20), 150.0);
}

TEST_F(ThumbnailTest, ASmallCutPngIsShownToo) {
  put("a.png", image::encode_png(two_halves(24, 24)));
  cut(0.7);
  EXPECT_GT(row_mean(shown(), 0), 150.0);
}

TEST_F(ThumbnailTest, APngTurnedByItsExifIsShownTurned) {
  const auto tiff = test::exif_block(6);
  put("a.png", test::with_png_chunk(image::encode_png(two_halves(128, 96)), test::png_chunk("eXIf", tiff)));
  cut(0.6);
  const HostArray picture = shown();  // what was above is at the right
  EXPECT_EQ(picture.shape(), Shape({64, 48, 3}));
  const auto samples = picture.as<uint8_t>();
  EXPECT_GT(samples[size_t{47} * 3], 150);
  EXPECT_EQ(samples[0], 0);
}

TEST_F(ThumbnailTest, ACutJpegIsShownToItsEnd) {
  put("a.jpg", image::encode_jpeg(two_halves(256, 256), 85));
  cut(0.6);
  const HostArray picture = shown();
  EXPECT_GT(row_mean(picture, 0), 150.0);
  EXPECT_LT(row_mean(picture, 63), 1.0);
}

TEST_F(ThumbnailTest, WhatIsNoPictureHasNone) {
  put("a.png", image::encode_png(two_halves(20, 20)));
  io::write_atomic(path_, std::string_view("no picture at all"));
  EXPECT_TRUE(thumbnail().png.empty());
  EXPECT_NE(thumbnail().problem, "");
}

TEST_F(ThumbnailTest, AMissingFileIsSaidSo) {
  put("a.png", image::encode_png(two_halves(20, 20)));
  std::filesystem::remove(path_);
  EXPECT_TRUE(thumbnail().png.empty());
  EXPECT_THAT(thumbnail().problem, HasSubstr("a.png"));
}

}  // namespace
}  // namespace chiliad::report
