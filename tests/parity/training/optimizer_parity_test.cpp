#include <ATen/ATen.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>

#include "chiliad/ops/adamw.h"
#include "chiliad/optim/ema.h"
#include "chiliad/optim/learning_rate.h"
#include "tests/parity/training/golden.h"

namespace chiliad {
namespace {

using test::GoldenCase;
using test::relative_difference;

/// The kit's tolerance: the reference computes in fp32 too, in another order.
constexpr double kTolerance = 1e-6;

/// A parameter with its optimizer state.
struct Group {
  std::string name;
  ops::AdamWStep step;
  at::Tensor param;
  at::Tensor exp_avg;
  at::Tensor exp_avg_sq;

  Group(const GoldenCase& golden, std::string key, double lr, double weight_decay) : name(std::move(key)) {
    step.lr = lr;
    step.beta1 = golden.options->at("betas").at(0).get<double>();
    step.beta2 = golden.options->at("betas").at(1).get<double>();
    step.eps = golden.options->at("eps").get<double>();
    step.weight_decay = weight_decay;
    param = golden.inputs.at(name).clone();
    exp_avg = at::zeros_like(param);
    exp_avg_sq = at::zeros_like(param);
  }

  void update(const at::Tensor& grad, int64_t number, double grad_scale) {
    step.step = number;
    step.grad_scale = grad_scale;
    ops::adamw(step, param.numel(), param.mutable_data_ptr<float>(), grad.const_data_ptr<float>(),
               exp_avg.mutable_data_ptr<float>(), exp_avg_sq.mutable_data_ptr<float>(), nullptr);
  }
};

std::vector<Group> groups_of(const GoldenCase& golden) {
  std::vector<Group> groups;
  groups.emplace_back(golden, "weight", golden.options->at("lr").get<double>(),
                      golden.options->at("weight_decay_weight").get<double>());
  groups.emplace_back(golden, "bias", golden.options->at("lr_bias").get<double>(),
                      golden.options->at("weight_decay_bias").get<double>());
  return groups;
}

double norm_of(const GoldenCase& golden, int64_t step) {
  double squares = 0.0;
  for (const char* name : {"weight", "bias"}) {
    const at::Tensor& grad = golden.inputs.at(fmt::format("grad.{}.{}", step, name));
    squares += ops::sum_of_squares(grad.const_data_ptr<float>(), grad.numel());
  }
  return std::sqrt(squares);
}

double max_norm_of(const GoldenCase& golden) {
  const auto& value = golden.options->at("max_norm");
  return value.is_null() ? 0.0 : value.get<double>();
}

TEST(AdamWParityTest, EveryStepMatches) {
  const auto folders = test::golden_folders("optimisers", "adamw");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders) {
    const GoldenCase golden = test::read_golden(folder);
    auto groups = groups_of(golden);
    const int64_t steps = golden.count("weight.");
    ASSERT_GT(steps, 0) << folder;
    for (int64_t step = 0; step < steps; ++step) {
      const double scale = optim::clip_factor(norm_of(golden, step), max_norm_of(golden));
      for (auto& group : groups) {
        const std::string key = fmt::format("{}.{}", step, group.name);
        group.update(golden.inputs.at("grad." + key), step + 1, scale);
        const std::string place = folder + " " + key;
        EXPECT_LT(
            relative_difference(group.param, golden.expected.at(fmt::format("{}.{}", group.name, step))),
            kTolerance)
            << place;
        EXPECT_LT(relative_difference(group.exp_avg, golden.expected.at("exp_avg." + key)), kTolerance)
            << place;
        EXPECT_LT(relative_difference(group.exp_avg_sq, golden.expected.at("exp_avg_sq." + key)), kTolerance)
            << place;
      }
    }
  }
}

TEST(ClippingParityTest, NormsAndClippedGradientsMatch) {
  int64_t compared = 0;
  for (const auto& folder : test::golden_folders("optimisers", "adamw")) {
    const GoldenCase golden = test::read_golden(folder);
    for (int64_t step = 0; step < golden.count("norm."); ++step) {
      const double norm = norm_of(golden, step);
      const double wanted = golden.expected.at(fmt::format("norm.{}", step)).item<double>();
      EXPECT_NEAR(norm / wanted, 1.0, kTolerance) << folder << " step " << step;
      const at::Tensor clipped = golden.inputs.at(fmt::format("grad.{}.weight", step)) *
                                 optim::clip_factor(norm, max_norm_of(golden));
      EXPECT_LT(relative_difference(clipped, golden.expected.at(fmt::format("clipped.{}.weight", step))),
                kTolerance)
          << folder << " step " << step;
      ++compared;
    }
  }
  EXPECT_GT(compared, 0);
}

optim::EmaOptions ema_options(const GoldenCase& golden) {
  optim::EmaOptions options;
  if (golden.options->is_null()) {
    options.decay = golden.inputs.at("decay").item<double>();
    options.warmup = optim::EmaWarmup::kNone;
    return options;
  }
  options.decay = golden.options->value("decay", options.decay);
  if (golden.options->value("use_ema_warmup", false)) options.warmup = optim::EmaWarmup::kPower;
  options.inv_gamma = golden.options->value("inv_gamma", options.inv_gamma);
  options.power = golden.options->value("power", options.power);
  options.update_after_step = golden.options->value("update_after_step", options.update_after_step);
  options.min_decay = golden.options->value("min_decay", options.min_decay);
  return options;
}

TEST(EmaParityTest, DecaysMatch) {
  int64_t compared = 0;
  for (const auto& folder : test::golden_folders("optimisers", "ema_diffusers")) {
    const GoldenCase golden = test::read_golden(folder);
    const at::Tensor& decays = golden.expected.at("decay");
    for (int64_t step = 0; step < decays.numel(); ++step, ++compared) {
      EXPECT_NEAR(optim::ema_decay(ema_options(golden), step + 1), decays[step].item<double>(), 1e-12)
          << folder << " step " << step;
    }
  }
  EXPECT_GT(compared, 0);
}

/// Moves `average` towards `parameter` by the product's kernel, with an update that leaves the parameter
/// alone.
void move_average(at::Tensor& average, const at::Tensor& parameter, double decay) {
  ops::AdamWStep step;
  step.ema = decay;
  at::Tensor param = parameter.clone();
  at::Tensor zero = at::zeros_like(param);
  at::Tensor exp_avg = at::zeros_like(param);
  at::Tensor exp_avg_sq = at::zeros_like(param);
  ops::adamw(step, param.numel(), param.mutable_data_ptr<float>(), zero.const_data_ptr<float>(),
             exp_avg.mutable_data_ptr<float>(), exp_avg_sq.mutable_data_ptr<float>(),
             average.mutable_data_ptr<float>());
}

TEST(EmaParityTest, AveragesMatch) {
  const auto folders = test::golden_folders("optimisers", "ema_");
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders) {
    const GoldenCase golden = test::read_golden(folder);
    at::Tensor average = golden.inputs.at("start").clone();
    ASSERT_GT(golden.count("average."), 0) << folder;
    for (int64_t step = 0; step < golden.count("average."); ++step) {
      move_average(average, golden.inputs.at(fmt::format("parameter.{}", step)),
                   optim::ema_decay(ema_options(golden), step + 1));
      EXPECT_LT(relative_difference(average, golden.expected.at(fmt::format("average.{}", step))), kTolerance)
          << folder << " step " << step;
    }
  }
}

/// The rate by the run file's options, or by the factor alone for what they cannot say (more than half a
/// wave).
double rate(const nlohmann::json& given, bool cosine, int64_t step) {
  spec::OptimizerOptions options;
  options.lr = given.at("lr").get<double>();
  options.warmup_steps = given.at("warmup").get<int64_t>();
  options.decay = cosine ? "cosine" : "constant";
  const auto total = given.value("total", int64_t{0});
  const double cycles = given.value("cycles", 0.5);
  if (cosine && cycles != 0.5 && step >= options.warmup_steps) {
    return options.lr *
           optim::cosine_factor(step - options.warmup_steps, total - options.warmup_steps, cycles);
  }
  return optim::learning_rate(options, step, total);
}

TEST(LearningRateParityTest, EveryStepMatches) {
  const GoldenCase golden = test::read_golden("optimisers/learning_rates");
  ASSERT_FALSE(golden.expected.empty());
  for (const auto& [name, rates] : golden.expected) {
    const auto& options = golden.options->at(name);
    for (int64_t step = 0; step < rates.numel(); ++step) {
      EXPECT_NEAR(rate(options, name.starts_with("cosine"), step), rates[step].item<double>(),
                  1e-12 * options.at("lr").get<double>())
          << name << " step " << step;
    }
  }
}

}  // namespace
}  // namespace chiliad
