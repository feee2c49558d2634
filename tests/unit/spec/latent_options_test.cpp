#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

using testing::HasSubstr;

std::string pixart_with(const std::vector<std::string>& overrides) {
  std::vector<std::string> all{
      "model.family=pixart",   "model.width=96",        "model.patch=2",      "model.heads=4",
      "model.text_channels=8", "encoders.pictures=vae", "encoders.text=bert", "objective.prediction=velocity",
      "data.index=birds",      "data.bucket_step=16",   "data.bucket_max=64"};
  for (const auto& change : overrides) {
    const std::string key = change.substr(0, change.find('=') + 1);
    std::erase_if(all, [&](const auto& other) { return other.starts_with(key); });
    all.push_back(change);
  }
  try {
    static_cast<void>(parse_run_file("version: 1\n", "run.yaml", "run", all));
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(LatentOptionsTest, AGoodFileIsGood) {
  EXPECT_EQ(pixart_with({}), "");
}

TEST(LatentOptionsTest, PicturesMayBePackedOnLatentsAlone) {
  EXPECT_EQ(pixart_with({"data.mode=pack"}), "");
  EXPECT_THAT(pixart_with({"data.mode=pack", "model.family=pixel_dit", "model.text_channels=0"}),
              HasSubstr("data.mode: expected bucket for family pixel_dit, got pack"));
}

TEST(LatentOptionsTest, PacksOfPicturesReadNoDocuments) {
  EXPECT_THAT(pixart_with({"data.mode=pack", "data.tokenizer=t.json"}),
              HasSubstr("data.tokenizer: expected nothing for family pixart, which reads no documents"));
}

TEST(LatentOptionsTest, BucketsAreWholePatchesOfLatents) {
  EXPECT_THAT(
      pixart_with({"data.bucket_step=8"}),
      HasSubstr("data.bucket_step: expected a multiple of model.patch * model.latent_pixels (16), got 8"));
}

TEST(LatentOptionsTest, EncodersAreNeededAndOnlyThere) {
  EXPECT_THAT(pixart_with({"model.text_channels=0"}),
              HasSubstr("model.text_channels: expected a positive number"));
  EXPECT_THAT(pixart_with({"model.family=pixel_dit", "model.text_channels=0"}),
              HasSubstr("encoders.pictures: expected nothing for family pixel_dit, got 'vae'"));
  EXPECT_THAT(pixart_with({"model.family=dit", "model.text_channels=0", "model.classes=3"}),
              HasSubstr("encoders.text: expected nothing for family dit"));
}

TEST(LatentOptionsTest, OptionsOfOtherFamiliesAreRefusedByOwner) {
  EXPECT_THAT(pixart_with({"model.classes=3"}), HasSubstr("belongs to model.family dit"));
  EXPECT_THAT(pixart_with({"model.rope_axes=[8, 8, 8]"}), HasSubstr("belongs to model.family flux"));
  EXPECT_THAT(pixart_with({"model.stage_channels=[8]"}), HasSubstr("belongs to model.family autoencoder"));
}

TEST(LatentOptionsTest, SizesThatCannotWorkAreNamedByTheirKeys) {
  EXPECT_THAT(pixart_with({"model.sample_size=1"}),
              HasSubstr("model.sample_size: expected at least the patch"));
  EXPECT_THAT(pixart_with({"model.size_conditions=true", "model.width=112", "model.heads=4"}),
              HasSubstr("a multiple of 3"));
}

TEST(LatentOptionsTest, CropsAreThoseThatWereEncoded) {
  EXPECT_THAT(pixart_with({"data.crop=random"}), HasSubstr("data.crop: expected center for latents"));
}

TEST(LatentOptionsTest, ObjectivesOwnTheirOptions) {
  EXPECT_THAT(pixart_with({"objective.min_snr_gamma=5"}), HasSubstr("belongs to objective.kind ddpm"));
  EXPECT_THAT(pixart_with({"objective.kind=ddpm", "objective.shift=2"}),
              HasSubstr("belongs to objective.kind flow"));
  EXPECT_THAT(pixart_with({"objective.mode_scale=1"}), HasSubstr("belongs to objective.times mode"));
  EXPECT_THAT(pixart_with({"objective.dynamic_shift=true", "objective.shift=3"}),
              HasSubstr("belongs to runs without objective.dynamic_shift"));
  EXPECT_THAT(pixart_with({"objective.kind=ddpm", "objective.prediction=noise", "model.learned_variance=true",
                           "objective.min_snr_gamma=5"}),
              HasSubstr("belongs to models without learned_variance"));
  EXPECT_THAT(pixart_with({"objective.kind=reconstruction"}),
              HasSubstr("expected flow or ddpm for family pixart"));
  EXPECT_THAT(pixart_with({"objective.prediction=noise"}), HasSubstr("expected sample or velocity"));
  EXPECT_THAT(pixart_with({"model.learned_variance=true"}),
              HasSubstr("model.learned_variance: expected false"));
  EXPECT_THAT(
      pixart_with({"objective.kind=ddpm", "objective.prediction=noise", "objective.zero_terminal_snr=true"}),
      HasSubstr("Did you mean prediction velocity?"));
}

TEST(LatentOptionsTest, PicturesOnTheWayAreOnesThatCanBeMade) {
  EXPECT_THAT(pixart_with({"evaluation.guidance_channels=5"}),
              HasSubstr("evaluation.guidance_channels: expected at most model.latent_channels (4), got 5"));
  const auto dit = [](const std::string& prompts) {
    return pixart_with({"model.family=dit", "model.text_channels=0", "model.classes=3",
                        "evaluation.samples_every=2", "evaluation.prompts=" + prompts});
  };
  EXPECT_THAT(dit("[\"3\"]"), HasSubstr("evaluation.prompts: expected numbers of classes below 3"));
  EXPECT_THAT(dit("[carrot]"), HasSubstr("got 'carrot'"));
}

TEST(LatentOptionsTest, WhatNothingReadsIsRefused) {
  EXPECT_THAT(pixart_with({"optimizer.decay=cosine", "optimizer.decay_fraction=0.5"}),
              HasSubstr("optimizer.decay_fraction: belongs to optimizer.decay linear"));
  EXPECT_THAT(pixart_with({"optimizer.ema_warmup=none"}), HasSubstr("belongs to runs with optimizer.ema"));
  EXPECT_THAT(pixart_with({"optimizer.ema=0.9", "optimizer.ema_power=0.5"}),
              HasSubstr("belongs to optimizer.ema_warmup power"));
  EXPECT_THAT(pixart_with({"objective.embedded_guidance=3.5"}),
              HasSubstr("belongs to models with model.guidance_input"));
  EXPECT_THAT(pixart_with({"encoders.tile_overlap=64"}), HasSubstr("belongs to runs with encoders.tile"));
}

TEST(LatentOptionsTest, TilesAreWholeLatents) {
  EXPECT_THAT(pixart_with({"encoders.tile=20"}),
              HasSubstr("encoders.tile: tile and tile_overlap: expected multiples of 8"));
  EXPECT_THAT(pixart_with({"encoders.tile=64", "encoders.tile_overlap=12"}), HasSubstr("got 64 and 12"));
  EXPECT_THAT(pixart_with({"encoders.tile=64", "encoders.tile_overlap=64"}), HasSubstr("got 64 and 64"));
  EXPECT_EQ(pixart_with({"encoders.tile=64", "encoders.tile_overlap=16"}), "");
}

TEST(LatentOptionsTest, ListsOfNumbersSayWhatTheyExpect) {
  EXPECT_THAT(pixart_with({"model.stage_channels=64"}), HasSubstr("Did you mean [64]?"));
  EXPECT_THAT(pixart_with({"model.stage_channels=[64, x]"}),
              HasSubstr("a whole number in [1, 65536], got \"x\""));
  EXPECT_THAT(pixart_with({"model.stage_channels=[]"}), HasSubstr("got an empty list"));
}

TEST(LatentOptionsTest, AutoencodersTakePicturesWithoutCaptions) {
  const std::vector<std::string> options{"model.family=autoencoder", "objective.kind=reconstruction",
                                         "data.index=birds"};
  const auto parse = [&](const std::string& more) {
    auto all = options;
    all.push_back(more);
    return parse_run_file("version: 1\n", "run.yaml", "run", all);
  };
  EXPECT_THROW(parse("data.languages=[en]"), InvalidInput);
  const auto file = parse("data.languages=[]");
  EXPECT_EQ(token_pixels(file.model), 8);
  EXPECT_GT(make_layer_table(file.model).num_params(), 80'000'000);  // Stable Diffusion 1's has 83.7 M
}

}  // namespace
}  // namespace chiliad::spec
