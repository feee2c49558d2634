// What a vision encoder makes of pictures in a conversation.
#include "chiliad/image/vision_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "chiliad/image/encode.h"
#include "chiliad/image/vision_inputs.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

using ::testing::HasSubstr;

constexpr VisionView kNext{336, 14, VisionFit::kTiles};

TEST(VisionViewTest, PadAndCropAreOneTile) {
  for (const auto fit : {VisionFit::kPad, VisionFit::kCrop}) {
    const VisionSize size = vision_size({336, 14, fit}, 1000, 300, 1);
    EXPECT_EQ(size.tiles, 1);
    EXPECT_EQ(size.positions, 576);
  }
}

// By transformers' LlavaNextProcessor._get_number_of_features, worked out by hand for these sizes.
TEST(VisionViewTest, TilesHaveThePositionsOfLlavaNext) {
  // 2 x 2 tiles, all of them shown: 48 x 48 and a line end each, and the whole picture.
  EXPECT_EQ(vision_size(kNext, 672, 672, 1).positions, 576 + 48 * 48 + 48);
  EXPECT_EQ(vision_size(kNext, 672, 672, 1).tiles, 5);
  // 1000 x 300 goes into 1 x 3 tiles, 24 x 72 patches: 300 * 72 / 1000 = 21.6 lines; one line above and below
  // is padding.
  EXPECT_EQ(vision_size(kNext, 1000, 300, 1).tiles, 4);
  EXPECT_EQ(vision_size(kNext, 1000, 300, 1).positions, 576 + 22 * 72 + 22);
  // The same upright: 300 * 72 / 1000 columns of 72 lines.
  EXPECT_EQ(vision_size(kNext, 300, 1000, 1).positions, 576 + 72 * 22 + 72);
}

TEST(VisionViewTest, SeveralPicturesHaveOneTileEach) {
  EXPECT_EQ(vision_size(kNext, 672, 672, 2).tiles, 1);
  EXPECT_EQ(vision_size(kNext, 672, 672, 2).positions, 576);
}

TEST(VisionViewTest, TilesAreThoseOfTheImageProcessors) {
  const HostArray picture = test::sloped_picture(90, 40);
  const auto png = encode_png(picture);
  const VisionView view{28, 14, VisionFit::kTiles};
  const VisionSize size = vision_size(view, 90, 40, 1);
  std::vector<std::byte> slot(static_cast<size_t>(size.tiles * view.tile_bytes()));
  ASSERT_EQ(vision_tiles(view, png, 1, {}, slot), "");
  const GridSize grids[]{{28, 56}, {56, 28}, {56, 56}, {84, 28}, {28, 84}};
  const auto tiles = any_resolution_tiles(picture, 28, grids);
  ASSERT_EQ(static_cast<int64_t>(tiles.size()), size.tiles);
  for (size_t t = 0; t < tiles.size(); ++t)
    EXPECT_EQ(
        std::memcmp(slot.data() + t * tiles[t].bytes().size(), tiles[t].data(), tiles[t].bytes().size()), 0);
  slot.resize(static_cast<size_t>(view.tile_bytes()));
  ASSERT_EQ(vision_tiles(view, png, 2, {}, slot), "");
  const HostArray square = resize(pad_to_square(picture, kClipMeanColor), 28, 28, Filter::kBicubic);
  EXPECT_EQ(std::memcmp(slot.data(), square.data(), slot.size()), 0);
}

TEST(VisionViewTest, RefusesDamageAndHugeSquares) {
  const VisionView view{28, 14, VisionFit::kPad};
  std::vector<std::byte> slot(static_cast<size_t>(view.tile_bytes()));
  const auto png = encode_png(test::sloped_picture(90, 40));
  EXPECT_NE(vision_tiles(view, std::span(png).first(60), 1, {}, slot), "");
  DecodeOptions options;
  options.limits.max_pixels = 90 * 40;
  EXPECT_THAT(vision_tiles(view, png, 1, options, slot), HasSubstr("would have 90 x 90 pixels"));
}

}  // namespace
}  // namespace chiliad::image
