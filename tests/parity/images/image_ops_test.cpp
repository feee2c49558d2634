#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <regex>

#include "chiliad/image/decode_fit.h"
#include "chiliad/image/jitter.h"
#include "chiliad/image/vision_inputs.h"
#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

using test::LiteTensor;

constexpr int32_t kSide = 24;
constexpr int32_t kTile = 16;

class ImageOpsParityTest : public testing::Test {
 protected:
  /// Keys that match, with their parts.
  void for_each(const char* pattern,
                const std::function<void(const std::smatch&, const LiteTensor&)>& check) {
    const std::regex key(pattern);
    int num_checked = 0;
    for (const auto& [name, tensor] : expected_) {
      std::smatch parts;
      if (!std::regex_match(name, parts, key)) continue;
      SCOPED_TRACE(name);
      check(parts, tensor);
      ++num_checked;
    }
    EXPECT_GT(num_checked, 0) << pattern;
  }
  [[nodiscard]] static HostArray picture(const std::string& file) {
    auto decoded = decode(test::read_bytes_lite(test::golden_kit() / "images" / "files" / file), {});
    EXPECT_TRUE(decoded) << decoded.reason;
    return std::move(*decoded.value);
  }
  [[nodiscard]] std::vector<int64_t> numbers(const std::string& name) const {
    const LiteTensor& tensor = expected_.at(name);
    std::vector<int64_t> values(tensor.bytes.size() / sizeof(int64_t));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }

  const std::map<std::string, LiteTensor> expected_ =
      test::read_safetensors_lite(test::golden_kit() / "image_ops" / "image_ops.safetensors");
};

TEST_F(ImageOpsParityTest, ColoursAreScaledAsPillowDoes) {
  for_each("enhance/([A-Z][a-z]+)/(.+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    auto pixels = expected_.at("enhance/source").bytes;
    const auto scale = parts[1] == "Brightness" ? scale_brightness
                       : parts[1] == "Contrast" ? scale_contrast
                                                : scale_saturation;
    scale(std::stod(parts[2]), pixels);
    EXPECT_EQ(test::distance(pixels, tensor.bytes).max_abs, 0);
  });
}

TEST_F(ImageOpsParityTest, ScaledDecodeGivesTheSizeAndPixelsOfPillowsDraft) {
  for_each("(draft/.+)/([0-9]+)x([0-9]+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    const auto& file = expected_.at(parts[1].str() + "/file").bytes;
    FitOptions options;
    options.fit = [&](int32_t, int32_t) { return stretch_fit(std::stoi(parts[2]), std::stoi(parts[3])); };
    options.dct_margin = 1.0;
    std::vector<std::byte> slot(tensor.bytes.size());
    EXPECT_EQ(decode_fit(file, options, slot), "");
    EXPECT_EQ(test::distance(slot, tensor.bytes).max_abs, 0);
    const auto info = probe(file);
    const int scale = dct_denominator(info.value->width, info.value->height, options.fit(0, 0), 1.0);
    const auto scaled = numbers(parts[0].str() + "/scaled_size");
    EXPECT_EQ((info.value->width + scale - 1) / scale, scaled[0]);
    EXPECT_EQ((info.value->height + scale - 1) / scale, scaled[1]);
  });
}

/// Largest difference of fp32 values.
double apart(const HostArray& found, const LiteTensor& expected) {
  if (found.shape() != Shape(expected.shape)) return INFINITY;
  double largest = 0.0;
  for (size_t i = 0; i < expected.bytes.size() / sizeof(float); ++i) {
    float value = 0;
    std::memcpy(&value, expected.bytes.data() + i * sizeof(float), sizeof(float));
    largest =
        std::max(largest, std::abs(static_cast<double>(value) - static_cast<double>(found.as<float>()[i])));
  }
  return largest;
}

TEST_F(ImageOpsParityTest, ClipSeesWhatItsProcessorMakes) {
  for_each("clip/(.+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    const HostArray source = picture(parts[1]);
    const Fit fit = clip_fit(static_cast<int32_t>(source.shape()[1]), static_cast<int32_t>(source.shape()[0]),
                             kSide + 4, kSide);
    EXPECT_LE(apart(normalize(resize(source, fit, Filter::kBicubic), kClipNormalization), tensor), 1e-6);
  });
}

TEST_F(ImageOpsParityTest, SiglipSeesWhatItsProcessorMakes) {
  for_each("siglip/(.+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    const HostArray made = resize(picture(parts[1]), stretch_fit(kSide, kSide), Filter::kBicubic);
    EXPECT_LE(apart(normalize(made, kHalfNormalization), tensor), 1e-6);
  });
}

TEST_F(ImageOpsParityTest, SquaresAreThoseOfLlava) {
  for_each("square/(.+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    EXPECT_EQ(test::difference(pad_to_square(picture(parts[1]), kClipMeanColor), tensor), "");
  });
}

TEST_F(ImageOpsParityTest, TilesAreThoseOfLlavaNext) {
  std::vector<GridSize> choices;
  const auto sides = numbers("tiles/choices_hw");
  for (size_t i = 0; i < sides.size(); i += 2)
    choices.push_back({static_cast<int32_t>(sides[i]), static_cast<int32_t>(sides[i + 1])});
  for_each("tiles/(.+\\..+)", [&](const std::smatch& parts, const LiteTensor& tensor) {
    const HostArray source = picture(parts[1]);
    const GridSize best = best_resolution(static_cast<int32_t>(source.shape()[1]),
                                          static_cast<int32_t>(source.shape()[0]), choices);
    const auto expected_best = numbers("best_hw/" + parts[1].str());
    EXPECT_EQ(best.height, expected_best[0]);
    EXPECT_EQ(best.width, expected_best[1]);
    const auto tiles = any_resolution_tiles(source, kTile, choices);
    ASSERT_EQ(static_cast<int64_t>(tiles.size()), tensor.shape.at(0));
    const size_t tile_bytes = tensor.bytes.size() / tiles.size();
    for (size_t i = 0; i < tiles.size(); ++i) {
      EXPECT_EQ(test::distance(tiles[i].bytes(), std::span(tensor.bytes).subspan(i * tile_bytes, tile_bytes))
                    .max_abs,
                0)
          << i;
    }
  });
}

}  // namespace
}  // namespace chiliad::image
