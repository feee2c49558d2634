#include "chiliad/train/probe.h"

#include <gtest/gtest.h>

namespace chiliad::train {
namespace {

const std::vector<FormatTime> kTimes{{"fp32", "library", 1.0}, {"fp32", "own", 0.8}, {"bf16", "known", 0.7}};

spec::RunFile wishes(const std::string& compute, const std::string& products) {
  spec::RunFile run;
  run.parallel.compute = compute;
  run.parallel.products = products;
  return run;
}

FormatChoice choose(const std::string& compute, const std::string& products,
                    const std::vector<FormatTime>& times = kTimes) {
  return choose_formats(wishes(compute, products), times);
}

TEST(ChooseFormatsTest, TakesTheFasterProducts) {
  EXPECT_EQ(choose("fp32", "auto").products, "own");
  EXPECT_EQ(choose("fp32", "auto").compute, "fp32");
}

TEST(ChooseFormatsTest, TakesHalfPrecisionWhereItSavesATenth) {
  EXPECT_EQ(choose("auto", "auto").compute, "bf16");
  EXPECT_EQ(choose("auto", "auto", {{"fp32", "library", 1.0}, {"bf16", "known", 0.95}}).compute, "fp32");
}

TEST(ChooseFormatsTest, ComparesWithWhatIsAsked) {
  const std::vector<FormatTime> times{{"fp32", "library", 0.5}, {"fp32", "own", 1.0}, {"bf16", "known", 0.6}};
  EXPECT_EQ(choose("auto", "own", times).compute, "bf16");
  EXPECT_EQ(choose("auto", "library", times).compute, "fp32");
}

TEST(ChooseFormatsTest, KeepsWhatIsAsked) {
  EXPECT_EQ(choose("bf16", "library").compute, "bf16");
  EXPECT_EQ(choose("bf16", "library").products, "library");
}

class ProbeFamilies : public testing::TestWithParam<spec::RunFile> {};

TEST_P(ProbeFamilies, ShapesAreTimed) {
  const auto shapes = probe_shapes(GetParam());
  const auto times = time_shapes(GetParam(), {shapes.front(), shapes.back()}, 1);
  for (const auto& time : times) {
    EXPECT_GT(time.cpu_seconds, 0.0);
    EXPECT_GT(time.work.flops(), 0.0);
  }
}

TEST_P(ProbeFamilies, FormatsAreTimed) {
  const auto times = time_formats(GetParam(), 1);
  EXPECT_EQ(times.front().products, "library");
  for (const auto& time : times) EXPECT_GT(time.cpu_seconds, 0.0) << time.compute << " " << time.products;
}

spec::RunFile family(const std::string& name) {
  spec::RunFile run;
  auto& model = run.model;
  model.family = name;
  model.width = 24;
  model.heads = 2;
  model.depth = 2;
  model.patch = name == "pixel_dit" ? 8 : 2;
  model.text_max_tokens = 24;
  model.classes = name == "dit" ? 5 : 0;
  model.text_channels = name == "dit" ? 0 : 12;
  model.pooled_channels = name == "sd3" || name == "flux" ? 8 : 0;
  model.single_depth = name == "flux" ? 1 : 0;
  model.rope_axes = {4, 4, 4};
  model.stage_channels = {8, 16};
  model.norm_groups = 4;
  model.mlp_width = 40;
  model.vocabulary = 64;
  run.data.resolution = 64;
  run.data.bucket_min = 32;
  run.data.bucket_max = 128;
  run.data.bucket_step = 16;
  run.data.micro_batch_items = 2;
  run.data.micro_batch_tokens = 64;
  run.data.sequence_length = 32;
  return run;
}

INSTANTIATE_TEST_SUITE_P(Families, ProbeFamilies,
                         testing::Values(family("pixel_dit"), family("dit"), family("pixart"), family("sd3"),
                                         family("flux"), family("autoencoder"), family("llama")),
                         [](const auto& given) { return given.param.model.family; });

}  // namespace
}  // namespace chiliad::train
