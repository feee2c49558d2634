#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "chiliad/objective/ddpm.h"
#include "chiliad/objective/learned_variance.h"
#include "chiliad/ops/backward.h"
#include "tests/parity/training/golden.h"

namespace chiliad::objective {
namespace {

using test::GoldenCase;
using test::relative_difference;

/// The kit's tolerances. The tables are fp64 on both sides.
constexpr double kTableTolerance = 1e-12;
constexpr double kTolerance = 1e-5;
/// The reference has fp32 tables, in which 1 - alpha cancels at t = 0.
constexpr double kSnrTolerance = 3e-4;
/// Of the variance objective, computed in fp64 and in fp32.
constexpr double kExactTolerance = 1e-10;
constexpr double kFloatTolerance = 1e-4;

struct DdpmCase {
  GoldenCase golden;
  NoiseSchedule schedule;

  [[nodiscard]] const at::Tensor& input(const char* name) const { return golden.inputs.at(name); }
  [[nodiscard]] const at::Tensor& expected(const char* name) const { return golden.expected.at(name); }
};

std::vector<DdpmCase> ddpm_cases() {
  const NoiseScheduleOptions linear{.schedule = BetaSchedule::kLinear, .beta_start = 1e-4, .beta_end = 0.02};
  const NoiseScheduleOptions scaled{
      .schedule = BetaSchedule::kScaledLinear, .beta_start = 0.00085, .beta_end = 0.012};
  std::vector<DdpmCase> cases;
  cases.push_back({test::read_golden("objectives/ddpm_linear"), make_noise_schedule(linear)});
  cases.push_back({test::read_golden("objectives/ddpm_scaled_linear"), make_noise_schedule(scaled)});
  return cases;
}

/// Says what was measured beside the comparison.
void expect_close(const DdpmCase& one, const char* name, double difference, double tolerance) {
  EXPECT_LT(difference, tolerance) << one.golden.folder << " " << name;
  testing::Test::RecordProperty(name, fmt::format("{:.2e}", difference));
}

TEST(DdpmParityTest, TablesMatch) {
  for (const auto& one : ddpm_cases()) {
    expect_close(one, "betas", relative_difference(one.schedule.betas, one.expected("betas")),
                 kTableTolerance);
    expect_close(one, "alphas_cumprod",
                 relative_difference(one.schedule.alphas_cumprod, one.expected("alphas_cumprod")),
                 kTableTolerance);
  }
}

TEST(DdpmParityTest, NoisedSamplesMatch) {
  for (const auto& one : ddpm_cases()) {
    const at::Tensor x_t =
        add_noise(one.schedule, one.input("x0"), one.input("noise"), one.input("timesteps"));
    expect_close(one, "x_t", relative_difference(x_t, one.expected("x_t")), kTolerance);
  }
}

TEST(DdpmParityTest, VelocitiesMatch) {
  for (const auto& one : ddpm_cases()) {
    const at::Tensor velocity = ddpm_target(one.schedule, Prediction::kVelocity, one.input("x0"),
                                            one.input("noise"), one.input("timesteps"));
    expect_close(one, "velocity", relative_difference(velocity, one.expected("velocity")), kTolerance);
  }
}

TEST(DdpmParityTest, LossesAndGradientsMatch) {
  for (const auto& one : ddpm_cases()) {
    at::Tensor predicted = one.input("predicted").detach().clone();
    predicted.set_requires_grad(true);
    const at::Tensor loss = ddpm_losses(one.schedule, Prediction::kNoise, predicted, one.input("x0"),
                                        one.input("noise"), one.input("timesteps"))
                                .mean();
    ops::backward({loss});
    expect_close(one, "eps_loss", relative_difference(loss, one.expected("eps_loss")), kTolerance);
    expect_close(one, "grad.predicted", relative_difference(predicted.grad(), one.expected("grad.predicted")),
                 kTolerance);
  }
}

/// Each weight against its own size: the SNR falls by nine orders of magnitude over a schedule.
double largest_relative(const std::vector<double>& actual, const at::Tensor& expected) {
  double largest = 0.0;
  for (size_t i = 0; i < actual.size(); ++i) {
    const auto wanted = expected[static_cast<int64_t>(i)].item<double>();
    largest = std::max(largest, std::abs(actual[i] - wanted) / wanted);
  }
  return largest;
}

std::vector<int64_t> times_of(const DdpmCase& one) {
  const at::Tensor times = one.input("timesteps").contiguous();
  return {times.const_data_ptr<int64_t>(), times.const_data_ptr<int64_t>() + times.numel()};
}

TEST(DdpmParityTest, SignalToNoiseRatiosMatch) {
  for (const auto& one : ddpm_cases()) {
    std::vector<double> snr;
    for (const int64_t t : times_of(one)) snr.push_back(one.schedule.snr(t));
    expect_close(one, "snr", largest_relative(snr, one.expected("snr")), kSnrTolerance);
  }
}

TEST(DdpmParityTest, MinSnrWeightsMatch) {
  for (const auto& one : ddpm_cases()) {
    for (const auto& [name, prediction] : {std::pair{"min_snr_weight_eps", Prediction::kNoise},
                                           std::pair{"min_snr_weight_v", Prediction::kVelocity}}) {
      std::vector<double> weights;
      for (const int64_t t : times_of(one))
        weights.push_back(min_snr_weight(one.schedule, prediction, t, 5.0));
      expect_close(one, name, largest_relative(weights, one.expected(name)), kSnrTolerance);
    }
  }
}

class LearnedVarianceParityTest : public testing::Test {
 protected:
  [[nodiscard]] LearnedVarianceLosses losses(const at::Tensor& model_output) const {
    const auto type = model_output.scalar_type();
    return learned_variance_losses(schedule_, tables_, model_output, golden_.inputs.at("x0").to(type),
                                   golden_.inputs.at("noise").to(type), golden_.inputs.at("timesteps"));
  }

  void expect_match(at::ScalarType type, double tolerance) {
    at::Tensor output = golden_.inputs.at("model_output").to(type).detach().clone();
    output.set_requires_grad(true);
    const auto terms = losses(output);
    const at::Tensor loss = (terms.mse + terms.vb).mean();
    ops::backward({loss});
    for (const auto& [name, actual] : {std::pair{"mse", terms.mse},
                                       {"kl", terms.kl},
                                       {"nll", terms.nll},
                                       {"vb", terms.vb},
                                       {"loss", loss},
                                       {"grad.model_output", output.grad()}}) {
      const double difference = relative_difference(actual, golden_.expected.at(name));
      EXPECT_LT(difference, tolerance) << name;
      RecordProperty(name, fmt::format("{:.2e}", difference));
    }
  }

  GoldenCase golden_ = test::read_golden("objectives/dit_learned_sigma");
  NoiseSchedule schedule_ = make_noise_schedule({});
  PosteriorTables tables_ = make_posterior_tables(schedule_);
};

TEST_F(LearnedVarianceParityTest, TablesMatch) {
  for (const auto& [name, table] : {std::pair{"table.log_beta", &tables_.log_beta},
                                    {"table.log_variance_clipped", &tables_.log_variance_clipped},
                                    {"table.mean_x0", &tables_.mean_x0},
                                    {"table.mean_xt", &tables_.mean_xt},
                                    {"table.root_product", &schedule_.signal},
                                    {"table.root_rest", &schedule_.noise}}) {
    EXPECT_LT(relative_difference(*table, golden_.expected.at(name)), kTableTolerance) << name;
  }
}

TEST_F(LearnedVarianceParityTest, LogVariancesMatch) {
  const at::Tensor output = golden_.inputs.at("model_output").to(at::kDouble);
  const int64_t channels = output.size(1) / 2;
  const at::Tensor actual =
      learned_log_variance(tables_, output.narrow(1, channels, channels), golden_.inputs.at("timesteps"));
  EXPECT_LT(relative_difference(actual, golden_.expected.at("log_variance")), kExactTolerance);
}

TEST_F(LearnedVarianceParityTest, TermsAndGradientsMatchInDouble) {
  expect_match(at::kDouble, kExactTolerance);
}

TEST_F(LearnedVarianceParityTest, TermsAndGradientsMatchInFloat) {
  expect_match(at::kFloat, kFloatTolerance);
}

}  // namespace
}  // namespace chiliad::objective
