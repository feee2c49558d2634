#include "chiliad/weights/configs/diffusion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"

namespace chiliad::weights {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kHeads = R"("num_attention_heads": 3, "attention_head_dim": 8, "num_layers": 2)";

spec::DiffusionOptions parse(const std::string& class_name, const std::string& more) {
  return parse_diffusion_config(
      "{\"_class_name\": \"" + class_name + "\", " + kHeads + (more.empty() ? "" : ", " + more) + "}",
      "c.json");
}

std::string message(const std::string& class_name, const std::string& more) {
  try {
    (void)parse(class_name, more);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

TEST(DiffusionConfigTest, DitHasItsDefaults) {
  const auto options = parse("DiTTransformer2DModel", "");
  EXPECT_EQ(options.family, "dit");
  EXPECT_EQ(options.out_channels, 4);
  EXPECT_EQ(options.classes, 1000);
  EXPECT_DOUBLE_EQ(options.mlp_norm_eps, 1e-5);
}

TEST(DiffusionConfigTest, OldClassIsToldByItsNorm) {
  EXPECT_EQ(parse("Transformer2DModel", R"("norm_type": "ada_norm_zero", "num_vector_embeds": null)").family,
            "dit");
  EXPECT_EQ(parse("Transformer2DModel", R"("norm_type": "ada_norm_single", "caption_channels": 20)").family,
            "pixart");
}

TEST(DiffusionConfigTest, OldClassWithAnotherNormIsRefused) {
  EXPECT_THAT(message("Transformer2DModel", R"("norm_type": "layer_norm")"),
              AllOf(HasSubstr("c.json: norm_type"), HasSubstr("layer_norm")));
}

TEST(DiffusionConfigTest, PixartScaleAndConditionsFollowTheSize) {
  const auto large = parse("PixArtTransformer2DModel", R"("caption_channels": 20, "sample_size": 128)");
  EXPECT_TRUE(large.size_conditions);
  EXPECT_DOUBLE_EQ(large.interpolation_scale, 2.0);
  const auto small = parse("PixArtTransformer2DModel", R"("caption_channels": 20, "sample_size": 64)");
  EXPECT_FALSE(small.size_conditions);
  EXPECT_DOUBLE_EQ(small.interpolation_scale, 1.0);
}

TEST(DiffusionConfigTest, PixartNeedsCaptionChannels) {
  EXPECT_THAT(message("PixArtTransformer2DModel", ""), HasSubstr("caption_channels: expected an integer"));
}

TEST(DiffusionConfigTest, OtherActivationsAreRefused) {
  EXPECT_THAT(message("DiTTransformer2DModel", R"("activation_fn": "geglu")"),
              HasSubstr(R"(activation_fn: expected "gelu-approximate", got "geglu")"));
}

TEST(DiffusionConfigTest, OtherNormsOfHeadsAreRefused) {
  EXPECT_THAT(message("SD3Transformer2DModel", R"("caption_projection_dim": 24, "qk_norm": "layer_norm")"),
              HasSubstr(R"(qk_norm: expected "rms_norm")"));
}

TEST(DiffusionConfigTest, AnotherTextWidthIsRefused) {
  EXPECT_THAT(message("SD3Transformer2DModel", R"("caption_projection_dim": 32)"),
              AllOf(HasSubstr("caption_projection_dim: expected"), HasSubstr("= 24, got 32")));
}

TEST(DiffusionConfigTest, FluxChannelsAreUnpacked) {
  const auto options = parse("FluxTransformer2DModel", R"("num_single_layers": 4, "out_channels": null)");
  EXPECT_EQ(options.in_channels, 16);
  EXPECT_EQ(options.out_channels, 16);
  EXPECT_EQ(options.patch, 2);
}

TEST(DiffusionConfigTest, FluxChannelsMustBeWholeSquares) {
  EXPECT_THAT(message("FluxTransformer2DModel", R"("num_single_layers": 4, "in_channels": 30)"),
              HasSubstr("in_channels: expected a multiple of 4"));
}

TEST(DiffusionConfigTest, UnknownKeysAreRefused) {
  EXPECT_THAT(message("DiTTransformer2DModel", R"("moe_experts": 4)"), HasSubstr("moe_experts"));
}

TEST(DiffusionConfigTest, OtherClassesAreRefused) {
  EXPECT_THAT(message("UNet2DConditionModel", ""), HasSubstr("_class_name: expected DiTTransformer2DModel"));
}

TEST(DiffusionConfigTest, WrongKindsAreRefused) {
  EXPECT_THAT(message("DiTTransformer2DModel", R"("patch_size": "2")"),
              HasSubstr("patch_size: expected an integer"));
}

TEST(DiffusionConfigTest, SomethingElseThanAnObjectIsRefused) {
  EXPECT_THROW((void)parse_diffusion_config("[]", "c.json"), InvalidInput);
  EXPECT_THROW((void)parse_diffusion_config("{", "c.json"), InvalidInput);
}

}  // namespace
}  // namespace chiliad::weights
