#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/bucket_tables.h"
#include "chiliad/spec/run_file.h"
#include "chiliad/spec/shape_stages.h"

namespace chiliad::spec {
namespace {

using ::testing::HasSubstr;

RunFile parse(const std::string& stages, const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{"data.index=birds", "data.stages=" + stages};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return parse_run_file("version: 1\n", "run.yaml", "run", overrides);
}

std::string error_of(const std::string& stages, const std::vector<std::string>& more = {}) {
  try {
    (void)parse(stages, more);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(StagesTest, AStageReplacesWhatItNames) {
  const DataOptions data =
      parse("[{from: 10, resolution: 64, bucket_max: 128, micro_batch_items: 8}, {from: 30, buckets: kohya}]")
          .data;
  const auto stages = stage_options(data);
  ASSERT_EQ(stages.size(), 3U);
  EXPECT_EQ(stages[0].resolution, 32);
  EXPECT_EQ(stages[1].resolution, 64);
  EXPECT_EQ(stages[1].bucket_max, 128);
  EXPECT_EQ(stages[1].bucket_min, 16);
  EXPECT_EQ(stages[1].micro_batch_items, 8);
  EXPECT_EQ(stages[2].buckets, "kohya");
  EXPECT_EQ(stages[2].resolution, 32);  // of the section, not of the stage before
}

TEST(StagesTest, AStageBeginsAtItsStep) {
  const DataOptions data = parse("[{from: 10, resolution: 40}, {from: 30, resolution: 48}]").data;
  EXPECT_EQ(stage_of(data, 0), 0U);
  EXPECT_EQ(stage_of(data, 9), 0U);
  EXPECT_EQ(stage_of(data, 10), 1U);
  EXPECT_EQ(stage_of(data, 29), 1U);
  EXPECT_EQ(stage_of(data, 30), 2U);
  EXPECT_EQ(last_stage(data).resolution, 48);
}

TEST(StagesTest, TheLongestSideIsThatOfAllStages) {
  EXPECT_EQ(longest_side(parse("[{from: 10, bucket_max: 128}, {from: 30, bucket_max: 96}]").data), 128);
}

TEST(StagesTest, WhatDoesNotFitIsNamed) {
  EXPECT_THAT(error_of("9"), HasSubstr("data.stages: expected a list of stages"));
  EXPECT_THAT(error_of("[9]"), HasSubstr("expected a stage such as {from: 10000, resolution: 512}"));
  EXPECT_THAT(error_of("[{resolution: 40}]"), HasSubstr("expected a stage with the step that it begins at"));
  EXPECT_THAT(error_of("[{from: 0, resolution: 40}]"), HasSubstr("from: expected a step from 1 on"));
  EXPECT_THAT(error_of("[{from: 9}]"), HasSubstr("expected a stage that changes something"));
  EXPECT_THAT(error_of("[{from: 9, resolution: 40}, {from: 9, resolution: 48}]"),
              HasSubstr("expected steps that rise"));
  EXPECT_THAT(error_of("[{from: 9, resolutoin: 40}]"), HasSubstr("Did you mean resolution?"));
  EXPECT_THAT(error_of("[{from: 9, resolution: big}]"), HasSubstr("resolution: expected a whole number in"));
  EXPECT_THAT(error_of("[{from: 9, buckets: khoya}]"), HasSubstr("Did you mean kohya?"));
}

TEST(StagesTest, RulesOfBucketsHoldInEachStage) {
  EXPECT_THAT(
      error_of("[{from: 9, resolution: 512}]"),
      HasSubstr("data.stages: from step 9: data.bucket_max: expected at least data.resolution (512)"));
  EXPECT_THAT(error_of("[{from: 9, bucket_step: 6}]"), HasSubstr("from step 9: data.bucket_"));
}

TEST(StagesTest, ModelsThatTakeNoOtherShapesRefuseThem) {
  EXPECT_THAT(error_of("[{from: 9, resolution: 40}]",
                       {"model.family=llama", "model.mlp_width=8", "model.vocabulary=300", "data.mode=pack"}),
              HasSubstr("expected none for family llama, which reads no pictures"));
  EXPECT_THAT(
      error_of("[{from: 9, resolution: 128}]",
               {"model.family=dit", "model.classes=7", "model.width=288", "encoders.pictures=vae",
                "data.bucket_step=64", "data.bucket_min=64", "data.bucket_max=128", "data.resolution=64"}),
      HasSubstr("latents are made once for a picture, in one shape"));
}

}  // namespace
}  // namespace chiliad::spec
