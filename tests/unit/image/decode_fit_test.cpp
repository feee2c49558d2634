#include "chiliad/image/decode_fit.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "chiliad/base/rng.h"
#include "chiliad/image/encode.h"
#include "tests/support/jpeg_variants.h"
#include "tests/support/picture_bytes.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

HostArray noisy_picture(int32_t width, int32_t height, uint64_t seed) {
  HostArray picture = test::sloped_picture(width, height);
  Rng rng(seed);
  for (uint8_t& sample : picture.as<uint8_t>())
    sample = static_cast<uint8_t>((sample + rng.below(64)) & 0xffU);
  return picture;
}

struct Result {
  std::string refusal;
  HostArray picture;
};

Result run(std::span<const std::byte> bytes, const FitOptions& options, int32_t width, int32_t height) {
  Result result{"", HostArray(DType::kU8, Shape{height, width, 3})};
  result.refusal = decode_fit(bytes, options, result.picture.bytes());
  return result;
}

int max_apart(const HostArray& a, const HostArray& b) {
  return a.shape() == b.shape() ? test::distance(a.bytes(), b.bytes()).max_abs : 255;
}

FitOptions cover_options(int32_t width, int32_t height, double crop_x, double crop_y) {
  FitOptions options;
  options.fit = [=](int32_t w, int32_t h) { return cover_fit(w, h, width, height, crop_x, crop_y); };
  return options;
}

/// decode_fit against decode, then cover, at several sizes, shapes and places of the cut.
void expect_same_pixels(const std::function<test::ByteVector(const HostArray&)>& encode) {
  Rng rng(7);
  for (int round = 0; round < 40; ++round) {
    const auto width = static_cast<int32_t>(1 + rng.below(round % 4 == 0 ? 24 : 180));
    const auto height = static_cast<int32_t>(1 + rng.below(round % 4 == 1 ? 24 : 180));
    const auto bytes = encode(noisy_picture(width, height, static_cast<uint64_t>(round)));
    const auto to_width = static_cast<int32_t>(1 + rng.below(60));
    const auto to_height = static_cast<int32_t>(1 + rng.below(60));
    const double crop_x = rng.uniform();
    const double crop_y = rng.uniform();
    const auto whole = decode(bytes, {});
    ASSERT_TRUE(whole) << whole.reason;
    const HostArray expected = cover(*whole.value, to_width, to_height, Filter::kBicubic, crop_x, crop_y);
    const Result found = run(bytes, cover_options(to_width, to_height, crop_x, crop_y), to_width, to_height);
    EXPECT_EQ(found.refusal, "");
    EXPECT_EQ(max_apart(found.picture, expected), 0)
        << width << " x " << height << " to " << to_width << " x " << to_height << " round " << round;
  }
}

void expect_same_jpeg_pixels(const test::JpegVariant& variant) {
  expect_same_pixels([&](const HostArray& picture) { return test::jpeg_variant(picture, variant); });
}

TEST(DecodeFitTest, PngGivesThePixelsOfSeparateSteps) {
  expect_same_pixels([](const HostArray& picture) { return encode_png(picture); });
}
TEST(DecodeFitTest, Jpeg420GivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({});
}
TEST(DecodeFitTest, Jpeg422GivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.h_sampling = 2, .v_sampling = 1});
}
TEST(DecodeFitTest, Jpeg440GivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.h_sampling = 1, .v_sampling = 2});
}
TEST(DecodeFitTest, Jpeg444GivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.h_sampling = 1, .v_sampling = 1});
}
TEST(DecodeFitTest, Jpeg411GivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.h_sampling = 4, .v_sampling = 1});
}
TEST(DecodeFitTest, GreyJpegGivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.grey = true});
}
TEST(DecodeFitTest, ProgressiveJpegGivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.progressive = true});
}
TEST(DecodeFitTest, ArithmeticJpegGivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.arithmetic = true});
}
TEST(DecodeFitTest, JpegWithRestartsGivesThePixelsOfSeparateSteps) {
  expect_same_jpeg_pixels({.restart_rows = 1});
}

TEST(DecodeFitTest, TurnedJpegsGiveThePixelsOfSeparateSteps) {
  const auto plain = encode_jpeg(noisy_picture(61, 43, 3), 90);
  for (uint16_t orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = test::with_exif(plain, test::exif_block(orientation));
    const HostArray expected = cover(*decode(bytes, {}).value, 20, 24, Filter::kBicubic, 0.2, 0.9);
    const Result found = run(bytes, cover_options(20, 24, 0.2, 0.9), 20, 24);
    EXPECT_EQ(found.refusal, "");
    EXPECT_EQ(max_apart(found.picture, expected), 0) << orientation;
  }
}

TEST(DecodeFitTest, MirrorsTheResult) {
  const auto bytes = encode_jpeg(noisy_picture(61, 43, 3), 90);
  FitOptions options = cover_options(21, 16, 0.5, 0.5);
  const HostArray straight = run(bytes, options, 21, 16).picture.clone();
  options.mirrored = true;
  EXPECT_EQ(max_apart(run(bytes, options, 21, 16).picture, flip_horizontal(straight)), 0);
}

TEST(DecodeFitTest, APictureOfTheRightSizeIsCopied) {
  const HostArray picture = noisy_picture(32, 20, 4);
  EXPECT_EQ(max_apart(run(encode_png(picture), cover_options(32, 20, 0.5, 0.5), 32, 20).picture, picture), 0);
}

/// A cut that leaves out the damaged rows and columns must not hide the damage.
TEST(DecodeFitTest, EveryCutOfAJpegIsRefusedWhateverIsKept) {
  for (const int restart_rows : {0, 1}) {
    const auto jpeg = test::jpeg_variant(noisy_picture(40, 100, 5), {.restart_rows = restart_rows});
    for (const double place : {0.0, 0.5, 1.0}) {
      const FitOptions options = cover_options(8, 8, place, place);
      for (size_t size = 0; size < jpeg.size() - 3; size += 7)
        EXPECT_NE(run(std::span(jpeg).first(size), options, 8, 8).refusal, "") << size << " at " << place;
    }
  }
}

TEST(DecodeFitTest, RefusesWhatDecodeRefuses) {
  const auto sound = encode_jpeg(noisy_picture(90, 60, 6), 90);
  Rng rng(8);
  for (int round = 0; round < 600; ++round) {
    auto bytes = sound;
    bytes[rng.below(bytes.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    FitOptions options = cover_options(12, 12, rng.uniform(), rng.uniform());
    options.decode.limits.max_pixels = 1 << 20;
    const auto whole = decode(bytes, options.decode);
    const Result found = run(bytes, options, 12, 12);
    EXPECT_EQ(found.refusal.empty(), static_cast<bool>(whole)) << found.refusal << whole.reason;
  }
}

TEST(DecodeFitTest, ScalesOnlyWhereBothSidesStayLargeEnough) {
  const Fit fit = stretch_fit(100, 50);
  EXPECT_EQ(dct_denominator(800, 400, fit, 1.0), 8);
  EXPECT_EQ(dct_denominator(799, 400, fit, 1.0), 4);
  EXPECT_EQ(dct_denominator(800, 199, fit, 1.0), 2);
  EXPECT_EQ(dct_denominator(800, 99, fit, 1.0), 1);
  EXPECT_EQ(dct_denominator(800, 400, fit, 2.0), 4);
  EXPECT_EQ(dct_denominator(800, 400, fit, 0.0), 1);
}

TEST(DecodeFitTest, ScaledDecodeStaysNearTheFullOne) {
  const auto bytes = encode_jpeg(test::sloped_picture(320, 240), 95);
  for (const double margin : {1.0, 1.5, 2.0}) {
    FitOptions options = cover_options(32, 32, 0.5, 0.5);
    const HostArray full = run(bytes, options, 32, 32).picture.clone();
    options.dct_margin = margin;
    const HostArray scaled = run(bytes, options, 32, 32).picture.clone();
    const auto apart = test::distance(full.bytes(), scaled.bytes());
    EXPECT_GT(apart.max_abs, 0) << margin;
    EXPECT_LE(apart.mean_abs, 2.0) << margin;
  }
}

TEST(DecodeFitTest, TurnedScaledDecodeShowsTheSamePart) {
  // 101 is no multiple of the denominator: the last column of the scaled picture stands for a part of a
  // pixel.
  const auto plain = encode_jpeg(test::sloped_picture(101, 67), 95);
  for (uint16_t orientation = 1; orientation <= 8; ++orientation) {
    const auto bytes = test::with_exif(plain, test::exif_block(orientation));
    FitOptions options = cover_options(16, 16, 0.5, 0.5);
    const HostArray full = run(bytes, options, 16, 16).picture.clone();
    options.dct_margin = 1.0;
    EXPECT_LE(test::distance(full.bytes(), run(bytes, options, 16, 16).picture.bytes()).mean_abs, 2.0)
        << orientation;
  }
}

}  // namespace
}  // namespace chiliad::image
