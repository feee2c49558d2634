#include "chiliad/image/resize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <regex>

#include "tests/support/kits.h"
#include "tests/support/picture_compare.h"

namespace chiliad::image {
namespace {

using test::LiteTensor;

class ResizeParityTest : public testing::Test {
 protected:
  static std::map<std::string, LiteTensor> read(const char* name) {
    return test::read_safetensors_lite(test::golden_kit() / "images" / name);
  }
  HostArray source(const std::string& name) {
    LiteTensor& pixels = sources_.at(name);
    return HostArray::view(DType::kU8, Shape(pixels.shape), pixels.bytes.data());
  }

  std::map<std::string, LiteTensor> sources_ = read("rgb.safetensors");
};

Filter filter_of(const std::string& name) {
  static const std::map<std::string, Filter> kFilters = {{"box", Filter::kBox},
                                                         {"bilinear", Filter::kBilinear},
                                                         {"hamming", Filter::kHamming},
                                                         {"bicubic", Filter::kBicubic},
                                                         {"lanczos", Filter::kLanczos}};
  return kFilters.at(name);
}

TEST_F(ResizeParityTest, EqualsPillowToTheBit) {
  const std::regex key("(.+)/([a-z]+)/([0-9]+)x([0-9]+)");
  const auto expected = read("resize.safetensors");
  ASSERT_FALSE(expected.empty());
  for (const auto& [name, pixels] : expected) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(name, parts, key)) << name;
    const auto resized =
        resize(source(parts[1]), std::stoi(parts[3]), std::stoi(parts[4]), filter_of(parts[2]));
    EXPECT_EQ(test::difference(resized, pixels), "") << name;
  }
}

TEST_F(ResizeParityTest, CoverEqualsTheKit) {
  const std::regex key("(.+)/cover_([0-9]+)x([0-9]+)");
  int num_compared = 0;
  for (const auto& [name, pixels] : read("cover_crop.safetensors")) {
    std::smatch parts;
    if (!std::regex_match(name, parts, key)) continue;
    ++num_compared;
    const auto covered = cover(source(parts[1]), std::stoi(parts[2]), std::stoi(parts[3]), Filter::kLanczos);
    EXPECT_EQ(test::difference(covered, pixels), "") << name;
  }
  EXPECT_GT(num_compared, 0);
}

/// The normalised floats [3, S, S] of torchvision as bytes [S, S, 3]; exact, since each byte has its own
/// float.
LiteTensor to_bytes(const LiteTensor& normalised) {
  const int64_t side = normalised.shape.at(1);
  LiteTensor bytes{"U8", {side, side, 3}, std::vector<std::byte>(static_cast<size_t>(side * side * 3))};
  for (int64_t i = 0; i < side * side * 3; ++i) {
    float value = 0;
    std::memcpy(&value, normalised.bytes.data() + 4 * (i % 3 * side * side + i / 3), sizeof(value));
    bytes.bytes[static_cast<size_t>(i)] = static_cast<std::byte>(std::lround((value * 0.5 + 0.5) * 255.0));
  }
  return bytes;
}

TEST_F(ResizeParityTest, ShortestEdgeAndCentreCropEqualTorchvision) {
  const std::regex key("(.+)/torchvision_([0-9]+)");
  for (const auto& [name, pixels] : read("cover_crop.safetensors")) {
    std::smatch parts;
    if (!std::regex_match(name, parts, key)) continue;
    const HostArray picture = source(parts[1]);
    const auto side = static_cast<int32_t>(std::stoi(parts[2]));
    const int64_t height = picture.shape()[0];
    const int64_t width = picture.shape()[1];
    const int64_t shorter = std::min(width, height);
    const auto wide = static_cast<int32_t>(side * width / shorter);
    const auto tall = static_cast<int32_t>(side * height / shorter);
    const auto left = static_cast<int32_t>(std::nearbyint((wide - side) / 2.0));
    const auto top = static_cast<int32_t>(std::nearbyint((tall - side) / 2.0));
    const auto cut = crop(resize(picture, wide, tall, Filter::kBilinear), left, top, side, side);
    EXPECT_EQ(test::difference(cut, to_bytes(pixels)), "") << name;
  }
}

}  // namespace
}  // namespace chiliad::image
