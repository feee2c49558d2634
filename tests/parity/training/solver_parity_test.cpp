#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>

#include "chiliad/generate/ddim.h"
#include "chiliad/generate/dpm_solver.h"
#include "tests/parity/training/golden.h"

namespace chiliad::generate {
namespace {

using objective::NoiseSchedule;
using objective::Prediction;
using test::GoldenCase;
using test::relative_difference;

/// The kit's tolerance: the reference computes in fp32.
constexpr double kTolerance = 1e-5;

NoiseSchedule configured_schedule(const nlohmann::json& config) {
  objective::NoiseScheduleOptions options;
  const auto name = config.at("beta_schedule").get<std::string>();
  if (name == "scaled_linear") {
    options.schedule = objective::BetaSchedule::kScaledLinear;
  } else if (name != "linear") {
    throw std::runtime_error("beta_schedule " + name);
  }
  options.beta_start = config.at("beta_start").get<double>();
  options.beta_end = config.at("beta_end").get<double>();
  options.train_steps = config.at("num_train_timesteps").get<int64_t>();
  options.zero_terminal_snr = config.at("rescale_betas_zero_snr").get<bool>();
  return objective::make_noise_schedule(options);
}

TimeSpacing configured_spacing(const nlohmann::json& config) {
  const auto name = config.at("timestep_spacing").get<std::string>();
  if (name == "leading") return TimeSpacing::kLeading;
  if (name == "trailing") return TimeSpacing::kTrailing;
  if (name == "linspace") return TimeSpacing::kLinspace;
  throw std::runtime_error("timestep_spacing " + name);
}

int configured_steps(const nlohmann::json& config) {
  return config.at("set_timesteps").at("num_inference_steps").get<int>();
}

std::unique_ptr<Sampler> configured_ddim(const nlohmann::json& config) {
  DdimOptions options;
  options.steps = configured_steps(config);
  options.spacing = configured_spacing(config);
  options.steps_offset = config.at("steps_offset").get<int64_t>();
  options.final_signal_one = config.at("set_alpha_to_one").get<bool>();
  if (config.at("clip_sample").get<bool>()) options.clip = config.at("clip_sample_range").get<double>();
  if (config.at("prediction_type") == "v_prediction") options.prediction = Prediction::kVelocity;
  return std::make_unique<DdimSampler>(configured_schedule(config), options);
}

SolverPath configured_path(const nlohmann::json& config) {
  if (config.at("use_flow_sigmas").get<bool>()) {
    return flow_path({.steps = configured_steps(config),
                      .shift = config.at("flow_shift").get<double>(),
                      .train_steps = config.at("num_train_timesteps").get<int64_t>()});
  }
  const bool karras = config.at("use_karras_sigmas").get<bool>();
  const bool zero = config.at("final_sigmas_type") == "zero";
  return discrete_path(configured_schedule(config),
                       {.steps = configured_steps(config),
                        .spacing = configured_spacing(config),
                        .sigmas = karras ? SigmaSpacing::kKarras : SigmaSpacing::kTimes,
                        .steps_offset = config.at("steps_offset").get<int64_t>(),
                        .final_sigma = zero ? FinalSigma::kZero : FinalSigma::kSmallest});
}

std::unique_ptr<Sampler> configured_solver(const nlohmann::json& config) {
  DpmSolverOptions options;
  if (config.at("prediction_type") == "flow_prediction") options.prediction = SolverPrediction::kFlow;
  if (config.at("solver_type") == "heun") options.form = SolverForm::kHeun;
  options.lower_order_final = config.at("lower_order_final").get<bool>();
  return std::make_unique<DpmSolver>(configured_path(config), options);
}

std::unique_ptr<Sampler> configured(const GoldenCase& golden) {
  const auto& config = *golden.options;
  if (config.at("_class_name") == "DDIMScheduler") return configured_ddim(config);
  if (config.at("_class_name") == "DPMSolverMultistepScheduler") return configured_solver(config);
  throw std::runtime_error("no sampler for " + golden.folder);
}

class SolverParityTest : public testing::Test {
 protected:
  SolverParityTest() {
    for (const char* prefix : {"ddim_", "dpmpp_"}) {
      for (const auto& folder : test::golden_folders("samplers", prefix))
        cases_.push_back(test::read_golden(folder));
    }
  }
  void SetUp() override { ASSERT_FALSE(cases_.empty()); }

  std::vector<GoldenCase> cases_;
};

TEST_F(SolverParityTest, TimesAreExact) {
  for (const auto& golden : cases_)
    EXPECT_EQ(relative_difference(configured(golden)->times(), golden.expected.at("timesteps")), 0.0)
        << golden.folder;
}

TEST_F(SolverParityTest, SigmasMatch) {
  int compared = 0;
  for (const auto& golden : cases_) {
    if (!golden.expected.contains("sigmas")) continue;
    const auto path = configured_path(*golden.options);
    const bool flow = golden.options->at("use_flow_sigmas").get<bool>();
    std::vector<double> sigmas;
    for (size_t i = 0; i < path.noise.size(); ++i)
      sigmas.push_back(flow ? path.noise[i] : path.noise[i] / path.signal[i]);
    EXPECT_LT(relative_difference(sigmas, golden.expected.at("sigmas")), kTolerance) << golden.folder;
    ++compared;
  }
  EXPECT_GT(compared, 0);
}

TEST_F(SolverParityTest, EveryStepMatches) {
  for (const auto& golden : cases_) {
    const auto sampler = configured(golden);
    const at::Tensor& wanted = golden.expected.at("x_steps");
    ASSERT_EQ(wanted.size(0), static_cast<int64_t>(sampler->times().size())) << golden.folder;
    SamplerState state;
    at::Tensor x = golden.inputs.at("x_start");
    double largest = 0.0;
    for (int64_t i = 0; i < wanted.size(0); ++i) {
      x = sampler->step(golden.inputs.at("model_outputs")[i], x, i, state);
      const double difference = relative_difference(x, wanted[i]);
      EXPECT_LT(difference, kTolerance) << golden.folder << " step " << i;
      largest = std::max(largest, difference);
    }
    RecordProperty(golden.folder.substr(golden.folder.rfind('/') + 1), fmt::format("{:.2e}", largest));
  }
}

}  // namespace
}  // namespace chiliad::generate
