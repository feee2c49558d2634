#include "chiliad/weights/configs/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "chiliad/base/error.h"
#include "tests/support/temp_dir.h"

namespace chiliad::weights {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SchedulerConfigTest : public testing::Test {
 protected:
  std::filesystem::path file(const std::string& text) const {
    std::filesystem::create_directories(folder_.path() / "scheduler");
    const auto path = folder_.path() / "scheduler" / "scheduler_config.json";
    std::ofstream(path) << text;
    return path;
  }

  test::TempDir folder_;
  static spec::ObjectiveOptions options_of(const char* kind, const char* prediction) {
    spec::ObjectiveOptions options;
    options.kind = kind;
    options.prediction = prediction;
    return options;
  }
  const spec::ObjectiveOptions flow_ = options_of("flow", "velocity");
  const spec::ObjectiveOptions ddpm_ = options_of("ddpm", "noise");
};

TEST_F(SchedulerConfigTest, WhatIsWrittenSaysTheSame) {
  auto shifted = flow_;
  shifted.shift = 3.0;
  auto dynamic = flow_;
  dynamic.dynamic_shift = true;
  auto scaled = ddpm_;
  scaled.noise_schedule = "scaled_linear";
  scaled.beta_start = 0.00085;
  scaled.beta_end = 0.012;
  scaled.prediction = "velocity";
  scaled.zero_terminal_snr = true;
  auto cosine = ddpm_;
  cosine.noise_schedule = "cosine";
  cosine.train_steps = 500;
  for (const auto& objective : {flow_, shifted, dynamic, ddpm_, scaled, cosine}) {
    const auto text = write_scheduler_config(objective, false);
    ASSERT_TRUE(text.has_value());
    EXPECT_THAT(scheduler_differences(file(*text), objective), IsEmpty()) << *text;
  }
  EXPECT_THAT(scheduler_differences(file(*write_scheduler_config(shifted, false)), flow_),
              ElementsAre("objective.shift is 1, there 3"));
  EXPECT_THAT(scheduler_differences(file(*write_scheduler_config(ddpm_, true)), flow_),
              ElementsAre("objective.kind is flow, there ddpm"));
}

TEST_F(SchedulerConfigTest, NamesWhatDiffersFromPublishedOnes) {
  const auto sd = file(R"({"_class_name": "PNDMScheduler", "beta_start": 0.00085, "beta_end": 0.012,
                           "beta_schedule": "scaled_linear", "num_train_timesteps": 1000})");
  EXPECT_THAT(scheduler_differences(sd, ddpm_),
              ElementsAre("objective.noise_schedule is linear, there scaled_linear"));
  const auto sd3 = file(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": 3.0})");
  EXPECT_THAT(scheduler_differences(sd3, flow_), ElementsAre("objective.shift is 1, there 3"));
  const auto solver = file(R"({"_class_name": "DPMSolverMultistepScheduler", "prediction_type": "epsilon"})");
  auto velocity = ddpm_;
  velocity.prediction = "velocity";
  EXPECT_THAT(scheduler_differences(solver, velocity),
              ElementsAre("objective.prediction is velocity, there noise"));
  EXPECT_THAT(scheduler_differences(file(R"({"_class_name": "SomethingNew"})"), velocity), IsEmpty());
}

TEST_F(SchedulerConfigTest, SaysWhatDiffusersCannot) {
  auto sample = flow_;
  sample.prediction = "sample";
  EXPECT_FALSE(write_scheduler_config(sample, false).has_value());
  EXPECT_FALSE(write_scheduler_config(options_of("reconstruction", "sample"), false).has_value());
}

TEST_F(SchedulerConfigTest, IsFoundBesideTheTransformerOrInIt) {
  const auto transformer = folder_.path() / "transformer";
  std::filesystem::create_directories(transformer);
  EXPECT_EQ(find_scheduler_config(transformer), "");
  EXPECT_EQ(find_scheduler_config(transformer / "a.safetensors"), "");
  const auto beside = file("{}");
  EXPECT_EQ(find_scheduler_config(transformer), beside);
  std::ofstream(transformer / "scheduler_config.json") << "{}";
  EXPECT_EQ(find_scheduler_config(transformer), transformer / "scheduler_config.json");
}

TEST_F(SchedulerConfigTest, RefusesWhatIsNoObject) {
  EXPECT_THROW((void)scheduler_differences(file("[1]"), flow_), InvalidInput);
  EXPECT_THROW((void)scheduler_differences(file("{"), flow_), InvalidInput);
  EXPECT_THROW((void)scheduler_differences(
                   file(R"({"_class_name": "FlowMatchEulerDiscreteScheduler", "shift": "x"})"), flow_),
               InvalidInput);
}

}  // namespace
}  // namespace chiliad::weights
