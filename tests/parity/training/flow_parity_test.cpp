#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "chiliad/objective/flow.h"
#include "chiliad/objective/flow_schedule.h"
#include "chiliad/ops/backward.h"
#include "tests/parity/training/golden.h"

namespace chiliad::objective {
namespace {

using test::GoldenCase;
using test::relative_difference;

/// The kit's tolerance: the reference computes in fp32.
constexpr double kTolerance = 1e-5;

struct Scheme {
  const char* name;
  TimeDensity density;
};
constexpr Scheme kSchemes[] = {{"logit_normal", TimeDensity::kLogitNormal},
                               {"mode", TimeDensity::kMode},
                               {"none", TimeDensity::kUniform}};

struct Weighting {
  const char* name;
  LossWeighting weighting;
};
constexpr Weighting kWeightings[] = {{"none", LossWeighting::kNone},
                                     {"sigma_sqrt", LossWeighting::kSigmaSqrt},
                                     {"cosmap", LossWeighting::kCosMap}};

std::vector<double> to_doubles(const at::Tensor& tensor) {
  const at::Tensor values = tensor.to(at::kDouble).contiguous();
  const auto* data = values.const_data_ptr<double>();
  return {data, data + values.numel()};
}

at::Tensor to_floats(const std::vector<double>& values) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(values.size())}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor;
}

/// The number behind the last `_` of a folder's name.
double shift_of(const std::string& folder) {
  return std::stod(folder.substr(folder.rfind('_') + 1));
}

std::vector<double> times_of(const GoldenCase& golden, const Scheme& scheme) {
  const TimeDensityOptions options{.density = scheme.density,
                                   .logit_mean = golden.inputs.at("logit_mean").item<double>(),
                                   .logit_std = golden.inputs.at("logit_std").item<double>(),
                                   .mode_scale = golden.inputs.at("mode_scale").item<double>()};
  std::vector<double> times;
  for (const double draw : to_doubles(golden.inputs.at(std::string("draw.") + scheme.name))) {
    times.push_back(density_time(options, draw));
  }
  return times;
}

class FlowParityTest : public testing::Test {
 protected:
  FlowParityTest() {
    for (const auto& folder : test::golden_folders("objectives", "flow_matching_shift_"))
      cases_.push_back(test::read_golden(folder));
  }
  void SetUp() override { ASSERT_FALSE(cases_.empty()); }

  std::vector<GoldenCase> cases_;
};

TEST_F(FlowParityTest, DrawsBecomeTheKitsTimes) {
  for (const auto& golden : cases_) {
    for (const auto& scheme : kSchemes) {
      EXPECT_LT(
          relative_difference(times_of(golden, scheme), golden.expected.at(std::string("u.") + scheme.name)),
          kTolerance)
          << golden.folder << " " << scheme.name;
    }
  }
}

TEST_F(FlowParityTest, TheTrainingTableMatches) {
  for (const auto& golden : cases_) {
    const at::Tensor& table = golden.expected.at("table.sigmas");
    auto sigmas = training_sigmas(table.numel(), shift_of(golden.folder));
    EXPECT_LT(relative_difference(sigmas, table), kTolerance) << golden.folder;
    for (double& sigma : sigmas) sigma *= static_cast<double>(table.numel());
    EXPECT_LT(relative_difference(sigmas, golden.expected.at("table.timesteps")), kTolerance)
        << golden.folder;
  }
}

TEST_F(FlowParityTest, IndicesAreExact) {
  for (const auto& golden : cases_) {
    const int64_t steps = golden.expected.at("table.sigmas").numel();
    const auto wanted = to_doubles(golden.expected.at("index"));
    const auto times = times_of(golden, kSchemes[0]);
    ASSERT_EQ(times.size(), wanted.size());
    for (size_t i = 0; i < times.size(); ++i) {
      EXPECT_EQ(table_index(static_cast<float>(times[i]), steps), static_cast<int64_t>(wanted[i]))
          << golden.folder << " " << i;
    }
  }
}

TEST_F(FlowParityTest, TimestepsComeFromTheTable) {
  for (const auto& golden : cases_) {
    const int64_t steps = golden.expected.at("table.sigmas").numel();
    const auto table = training_sigmas(steps, shift_of(golden.folder));
    for (const auto& scheme : kSchemes) {
      std::vector<double> timesteps;
      for (const double u : times_of(golden, scheme)) {
        timesteps.push_back(table.at(static_cast<size_t>(table_index(static_cast<float>(u), steps))) *
                            static_cast<double>(steps));
      }
      EXPECT_LT(relative_difference(timesteps, golden.expected.at(std::string("timesteps.") + scheme.name)),
                kTolerance)
          << golden.folder << " " << scheme.name;
    }
  }
}

/// x0 and the like as [B, N, C].
at::Tensor as_items(const at::Tensor& tensor) {
  return tensor.flatten(2);
}

TEST_F(FlowParityTest, NoisedSamplesAndTargetsMatch) {
  for (const auto& golden : cases_) {
    const at::Tensor x0 = as_items(golden.inputs.at("x0"));
    const at::Tensor noise = as_items(golden.inputs.at("noise"));
    EXPECT_LT(relative_difference(interpolate(x0, noise, golden.expected.at("sigmas")),
                                  as_items(golden.expected.at("x_t"))),
              kTolerance)
        << golden.folder;
    EXPECT_LT(relative_difference(velocity_target(x0, noise), as_items(golden.expected.at("target"))),
              kTolerance)
        << golden.folder;
  }
}

std::vector<double> weights_of(const GoldenCase& golden, LossWeighting weighting) {
  std::vector<double> weights;
  for (const double sigma : to_doubles(golden.expected.at("sigmas")))
    weights.push_back(loss_weight(weighting, sigma));
  return weights;
}

TEST_F(FlowParityTest, WeightsMatch) {
  for (const auto& golden : cases_) {
    for (const auto& [name, weighting] : kWeightings) {
      EXPECT_LT(relative_difference(weights_of(golden, weighting),
                                    golden.expected.at(std::string("weight.") + name)),
                kTolerance)
          << golden.folder << " " << name;
    }
  }
}

TEST_F(FlowParityTest, LossesAndGradientsMatch) {
  spec::ObjectiveOptions velocity;
  velocity.prediction = velocity.loss = "velocity";
  for (const auto& golden : cases_) {
    for (const auto& [name, weighting] : kWeightings) {
      at::Tensor predicted = as_items(golden.inputs.at("predicted")).detach().clone();
      predicted.set_requires_grad(true);
      const at::Tensor losses =
          item_losses(velocity, predicted, as_items(golden.inputs.at("x0")),
                      as_items(golden.inputs.at("noise")), golden.expected.at("sigmas"));
      const at::Tensor loss = (losses * to_floats(weights_of(golden, weighting))).mean();
      ops::backward({loss});
      EXPECT_LT(relative_difference(loss, golden.expected.at(std::string("loss.") + name)), kTolerance)
          << golden.folder << " " << name;
      EXPECT_LT(relative_difference(predicted.grad(),
                                    as_items(golden.expected.at(std::string("grad.predicted.") + name))),
                kTolerance)
          << golden.folder << " " << name;
    }
  }
}

}  // namespace
}  // namespace chiliad::objective
