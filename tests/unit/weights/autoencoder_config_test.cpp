#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"
#include "chiliad/weights/configs/autoencoder.h"
#include "chiliad/weights/key_tables/autoencoder.h"
#include "tests/support/kits.h"

namespace chiliad::weights {
namespace {

spec::AutoencoderOptions parse(const std::string& more) {
  return parse_autoencoder_config(R"({"_class_name": "AutoencoderKL", "block_out_channels": [32, 64],
    "down_block_types": ["DownEncoderBlock2D", "DownEncoderBlock2D"],
    "up_block_types": ["UpDecoderBlock2D", "UpDecoderBlock2D"])" +
                                      more + "}",
                                  "config.json");
}

std::string message_of(const std::string& more) {
  try {
    (void)parse(more);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(AutoencoderConfigTest, ReadsTheKitsWithoutQuantConvolutions) {
  const auto options = read_autoencoder_config(test::golden_kit() / "vae_flux" / "config.json");
  EXPECT_FALSE(options.quant_conv);
  EXPECT_FALSE(options.post_quant_conv);
  EXPECT_EQ(options.stage_channels, (std::vector<int64_t>{16, 24}));
  EXPECT_EQ(options.latent_channels, 6);
  EXPECT_EQ(options.norm_groups, 8);
  EXPECT_EQ(options.scaling_factor, 0.3611);
  EXPECT_EQ(options.shift_factor, 0.1159);
}

TEST(AutoencoderConfigTest, OldFilesHaveQuantConvolutionsAndNoShift) {
  const auto options = parse(R"(, "layers_per_block": 2)");
  EXPECT_TRUE(options.quant_conv && options.post_quant_conv && options.middle_attention);
  EXPECT_EQ(options.shift_factor, 0.0);
  EXPECT_EQ(options.scaling_factor, 0.18215);
  EXPECT_EQ(options.layers_per_stage, 2);
}

TEST(AutoencoderConfigTest, WrittenConfigMeansTheSame) {
  auto options =
      parse(R"(, "shift_factor": 0.25, "use_quant_conv": false, "mid_block_add_attention": false)");
  const auto back = parse_autoencoder_config(write_autoencoder_config(options), "written");
  EXPECT_EQ(back.stage_channels, options.stage_channels);
  EXPECT_EQ(back.shift_factor, 0.25);
  EXPECT_FALSE(back.quant_conv);
  EXPECT_TRUE(back.post_quant_conv);
  EXPECT_FALSE(back.middle_attention);
}

TEST(AutoencoderConfigTest, OtherBlocksAreRefused) {
  EXPECT_THAT(message_of(R"(, "x": 1)"),
              testing::HasSubstr("config.json: x: expected a key of AutoencoderKL"));
  EXPECT_THAT(message_of(R"(, "act_fn": "relu")"),
              testing::HasSubstr("act_fn: expected \"silu\", got \"relu\""));
  EXPECT_THAT(message_of(R"(, "latents_mean": [0.5])"), testing::HasSubstr("latents_mean: expected null"));
  EXPECT_THAT(message_of(R"(, "scaling_factor": 0)"), testing::HasSubstr("scaling_factor: expected a size"));
  EXPECT_THAT(message_of(R"(, "scaling_factor": 1e308)"),
              testing::HasSubstr("scaling_factor: expected a size"));
  EXPECT_THAT(message_of(R"(, "layers_per_block": 1000000000)"),
              testing::HasSubstr("layers_per_block: expected at most 64, got 1000000000"));
  EXPECT_THAT(message_of(R"(, "latent_channels": 4611686018427387904)"),
              testing::HasSubstr("latent_channels: expected at most 4096"));
  EXPECT_THAT(message_of(R"(, "layers_per_block": 0)"),
              testing::HasSubstr("layers_per_block: expected an integer"));
  EXPECT_THAT(message_of(R"(, "use_quant_conv": 1)"),
              testing::HasSubstr("use_quant_conv: expected true or false"));
}

TEST(AutoencoderConfigTest, BlockTypesAreCheckedOneByOne) {
  const std::string text = R"({"block_out_channels": [32, 64], "up_block_types": ["UpDecoderBlock2D"],
    "down_block_types": ["DownEncoderBlock2D", "AttnDownEncoderBlock2D"]})";
  try {
    (void)parse_autoencoder_config(text, "config.json");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("down_block_types: expected \"DownEncoderBlock2D\", got "
                                                 "\"AttnDownEncoderBlock2D\""));
  }
}

TEST(AutoencoderConfigTest, OtherClassesAreRefused) {
  EXPECT_THROW((void)parse_autoencoder_config(R"({"_class_name": "AutoencoderTiny"})", "c"), InvalidInput);
  EXPECT_THROW((void)parse_autoencoder_config("not json", "c"), InvalidInput);
}

TEST(AutoencoderKeysTest, OldNamesBecomeOurs) {
  const KeyTable keys = autoencoder_keys();
  EXPECT_EQ(keys.ours("encoder.mid_block.attentions.0.proj_attn.bias"),
            "encoder.mid_block.attentions.0.to_out.0.bias");
  EXPECT_EQ(keys.ours("decoder.mid_block.attentions.0.query.weight"),
            "decoder.mid_block.attentions.0.to_q.weight");
}

TEST(AutoencoderKeysTest, BothWaysGiveEveryKeyBack) {
  const KeyTable to_old = old_autoencoder_keys();
  const KeyTable to_new = autoencoder_keys();
  int changed = 0;
  for (const auto& layer : spec::families::autoencoder_table({}).layers) {
    for (const auto& param : layer.params) {
      const auto old_name = to_old.ours(param.name);
      ASSERT_TRUE(old_name);
      EXPECT_EQ(to_new.ours(*old_name), param.name);
      changed += *old_name == param.name ? 0 : 1;
    }
  }
  EXPECT_EQ(changed, 16);
}

}  // namespace
}  // namespace chiliad::weights
