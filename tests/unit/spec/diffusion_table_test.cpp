#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec::families {
namespace {

DiffusionOptions small(const std::string& family) {
  DiffusionOptions options;
  options.family = family;
  options.heads = 3;
  options.head_size = 8;
  options.depth = 2;
  options.single_depth = family == "flux" ? 2 : 0;
  options.text_channels = 20;
  options.pooled_channels = 12;
  options.rope_axes = {2, 2, 4};
  return options;
}

TEST(DiffusionTableTest, DitXlHasThePublishedSize) {
  // The paper counts the fixed positions too: 256 x 1152.
  EXPECT_EQ(diffusion_table({}).num_params(), 675'129'632 - 256 * 1152);
}

TEST(DiffusionTableTest, ParameterNamesAreUnique) {
  for (const char* family : {"dit", "pixart", "sd3", "flux"}) {
    std::set<std::string> names;
    for (const auto& layer : diffusion_table(small(family)).layers) {
      for (const auto& param : layer.params) EXPECT_TRUE(names.insert(param.name).second) << param.name;
    }
  }
}

TEST(DiffusionTableTest, LastBlockOfSd3GivesNoText) {
  const auto table = diffusion_table(small("sd3"));
  const auto& last = table.layers[table.layers.size() - 2];
  EXPECT_THAT(last.writes, testing::ElementsAre("image"));
  for (const auto& param : last.params)
    EXPECT_THAT(param.name, testing::Not(testing::HasSubstr("ff_context"))) << param.name;
}

TEST(DiffusionTableTest, WorkOfABlockIsThatOfItsProducts) {
  const auto layer = diffusion_table(small("dit")).layers[1];
  const auto work = layer.forward({.items = 2, .image_tokens = 16});
  const double d = 24;
  EXPECT_DOUBLE_EQ(work.linear_flops, 2.0 * 2 * (16 * 12 * d * d + 6 * d * d));
  EXPECT_DOUBLE_EQ(work.attention_flops, 4.0 * 2 * 16 * 16 * d);
}

TEST(DiffusionTableTest, TextTakesPartInJointAttention) {
  const auto layer = diffusion_table(small("flux")).layers[1];
  const auto work = layer.forward({.items = 1, .image_tokens = 16, .text_tokens = 4});
  EXPECT_DOUBLE_EQ(work.attention_flops, 4.0 * 20 * 20 * 24);
}

TEST(DiffusionTableTest, AnUnknownFamilyIsRefused) {
  EXPECT_THROW((void)diffusion_table(small("unet")), InvalidInput);
}

TEST(DiffusionTableTest, RotaryAxesMustFillAHead) {
  auto options = small("flux");
  options.rope_axes = {2, 2, 2};
  EXPECT_THROW((void)diffusion_table(options), InvalidInput);
}

TEST(DiffusionTableTest, SizeConditionsNeedAWidthOfThirds) {
  auto options = small("pixart");
  options.heads = 4;
  options.size_conditions = true;
  EXPECT_THROW((void)diffusion_table(options), InvalidInput);
}

}  // namespace
}  // namespace chiliad::spec::families
