#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec {
namespace {

TEST(AutoencoderTableTest, StableDiffusionHasItsParameters) {
  EXPECT_EQ(families::autoencoder_table({}).num_params(), 83653863);  // as diffusers counts its own
}

TEST(AutoencoderTableTest, WorkIsThatOfTheDecoder) {
  Work decoder;
  for (const auto& layer : families::autoencoder_table({}).layers) {
    if (layer.component == "decoder") decoder += layer.forward({1, 64 * 64, 0});
  }
  // Twice the multiply-adds that hooks on the convolutions and products of diffusers' model count, 512 x 512.
  EXPECT_EQ(decoder.linear_flops, 2480159195136.0);
}

TEST(AutoencoderTableTest, GroupsMustDivideChannels) {
  AutoencoderOptions options;
  options.norm_groups = 48;
  EXPECT_THROW((void)families::autoencoder_table(options), InvalidInput);
}

}  // namespace
}  // namespace chiliad::spec
