// Rules of section `model` that depend on the family.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::spec {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string error_of(std::vector<std::string> overrides) {
  overrides.emplace_back("data.index=birds");
  try {
    (void)parse_run_file("version: 1\n", "run.yaml", "run", overrides);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "no error";
}

std::vector<std::string> language(std::vector<std::string> more, const std::string& family = "llama") {
  more.insert(more.end(),
              {"model.family=" + family, "model.mlp_width=64", "model.vocabulary=96", "data.mode=pack"});
  return more;
}

TEST(LanguageOptionsTest, BothFamiliesAreRead) {
  EXPECT_EQ(error_of(language({})), "no error");
  EXPECT_EQ(error_of(language({"model.tied=true", "model.kv_heads=2"}, "qwen2")), "no error");
}

TEST(LanguageOptionsTest, OptionsOfAnotherFamilyAreRefused) {
  EXPECT_THAT(error_of({"model.vocabulary=96"}),
              StartsWith("--set model.vocabulary: belongs to model.family llama or qwen2: expected 0 here, "
                         "got 96. Remove it"));
  EXPECT_THAT(error_of(language({"model.patch=4"})),
              HasSubstr("belongs to diffusion transformers (pixel_dit, dit, pixart, sd3, flux)"));
}

TEST(LanguageOptionsTest, QwenHasItsOwnBiases) {
  EXPECT_THAT(error_of(language({"model.attention_bias=true"}, "qwen2")),
              HasSubstr("model.attention_bias: belongs to model.family llama"));
}

TEST(LanguageOptionsTest, NumbersOfAnotherScalingAreRefused) {
  EXPECT_THAT(error_of(language({"model.rope_factor=4"})), HasSubstr("belongs to model.rope_scaling"));
  EXPECT_THAT(error_of(language({"model.rope_scaling=linear", "model.rope_beta_fast=16"})),
              HasSubstr("belongs to model.rope_scaling yarn"));
}

TEST(LanguageOptionsTest, SizesAreNeeded) {
  EXPECT_THAT(error_of({"model.family=llama", "model.vocabulary=96"}),
              HasSubstr("model.mlp_width: expected a positive number"));
  EXPECT_THAT(error_of({"model.family=llama", "model.mlp_width=64"}),
              HasSubstr("model.vocabulary: expected a positive number"));
}

TEST(LanguageOptionsTest, KeyHeadsDivideHeads) {
  EXPECT_THAT(error_of(language({"model.kv_heads=3"})),
              HasSubstr("model.kv_heads: expected a divisor of model.heads (4), got 3"));
}

TEST(LanguageOptionsTest, AGivenHeadSizeFreesTheWidth) {
  EXPECT_EQ(error_of(language({"model.width=250", "model.head_size=12"})), "no error");
  EXPECT_THAT(error_of(language({"model.head_size=13"})),
              HasSubstr("model.head_size: expected an even number"));
}

TEST(LanguageOptionsTest, StretchedFrequenciesNeedTheOriginalContext) {
  EXPECT_THAT(error_of(language({"model.rope_scaling=yarn", "model.rope_factor=4"})),
              HasSubstr("model.rope_original_context: expected a positive number"));
}

TEST(LanguageOptionsTest, BoundsOfTheScalingsAreInOrder) {
  EXPECT_THAT(error_of(language({"model.rope_scaling=llama3", "model.rope_original_context=16",
                                 "model.rope_low_frequency=4"})),
              HasSubstr("model.rope_low_frequency: expected less than"));
  EXPECT_THAT(error_of(language(
                  {"model.rope_scaling=yarn", "model.rope_original_context=16", "model.rope_beta_slow=32"})),
              HasSubstr("model.rope_beta_slow: expected less than"));
}

TEST(LanguageOptionsTest, BucketsAreNotTheirMatter) {
  EXPECT_EQ(error_of(language({"data.bucket_step=4", "data.bucket_min=20"})), "no error");
}

}  // namespace
}  // namespace chiliad::spec
