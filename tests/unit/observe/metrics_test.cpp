#include "chiliad/observe/metrics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "chiliad/base/error.h"

namespace chiliad::observe {
namespace {

TEST(StepMetricsTest, ReadsBackWhatItWrites) {
  StepMetrics metrics;
  metrics.validation_loss_by_time = {0.5, 0.25};
  metrics.step = 7;
  metrics.steps = 100;
  metrics.epoch = 2;
  metrics.rank = 1;
  metrics.loss = 0.1;
  metrics.items = 64;
  metrics.seconds[3] = 1.5;
  metrics.other = 0.25;
  metrics.peak_memory = 123456;
  metrics.mfu = 0.4;
  metrics.cpu = 3.5;
  metrics.sent = {{"gather", 4096}, {"control", 16}};
  metrics.sent_by_tier = {{"machine", 4112}};
  metrics.loader = LoaderMetrics{3, 8, 2, 1 << 20, 1, 1, "decoding"};
  metrics.components = {{"backbone", {1.5, 3.25}}, {"head", {0.0, 0.125}}};
  EXPECT_EQ(StepMetrics::from_json(metrics.to_json()), metrics);
}

TEST(StepMetricsTest, IsOneLine) {
  EXPECT_EQ(StepMetrics().to_json().find('\n'), std::string::npos);
}

TEST(StepMetricsTest, NanBecomesNullAndBack) {
  StepMetrics metrics;
  metrics.loss = std::nan("");
  EXPECT_NE(metrics.to_json().find("\"loss\":null"), std::string::npos);
  EXPECT_TRUE(std::isnan(StepMetrics::from_json(metrics.to_json()).loss));
}

TEST(StepMetricsTest, RefusesOtherText) {
  EXPECT_THROW((void)StepMetrics::from_json("{\"step\":\"x\"}"), CorruptData);
}

}  // namespace
}  // namespace chiliad::observe
