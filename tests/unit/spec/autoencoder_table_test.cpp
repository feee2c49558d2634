#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec {
namespace {

TEST(AutoencoderTableTest, StableDiffusionHasItsParameters) {
  EXPECT_EQ(families::autoencoder_table({}).num_params(), 83653863);  // as diffusers counts sd-vae-ft-mse
}

TEST(AutoencoderTableTest, WorkIsThatOfTheDecoder) {
  Work decoder;
  for (const auto& layer : families::autoencoder_table({}).layers) {
    if (layer.component == "decoder") decoder += layer.forward({1, 64 * 64, 0});
  }
  // Multiply-adds counted by hooks on diffusers' model at 512 x 512, twice.
  EXPECT_NEAR(decoder.linear_flops, 2.480e12, 0.01e12);
}

TEST(AutoencoderTableTest, GroupsMustDivideChannels) {
  AutoencoderOptions options;
  options.norm_groups = 48;
  EXPECT_THROW((void)families::autoencoder_table(options), InvalidInput);
}

}  // namespace
}  // namespace chiliad::spec
