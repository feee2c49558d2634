#include "chiliad/objective/diffusion_objective.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/rng.h"
#include "chiliad/objective/ddpm.h"
#include "chiliad/objective/flow.h"
#include "chiliad/objective/loss_extension.h"
#include "chiliad/objective/validation.h"

namespace chiliad::objective {
namespace {

constexpr double kNetworkScale = 1000.0;  // of flow times, for networks of diffusers

NoiseScheduleOptions schedule_options(const spec::ObjectiveOptions& options) {
  NoiseScheduleOptions made;
  if (options.noise_schedule == "scaled_linear") made.schedule = BetaSchedule::kScaledLinear;
  if (options.noise_schedule == "cosine") made.schedule = BetaSchedule::kSquaredCosine;
  made.beta_start = options.beta_start;
  made.beta_end = options.beta_end;
  made.train_steps = options.train_steps;
  made.zero_terminal_snr = options.zero_terminal_snr;
  return made;
}

Times flow_times(const std::vector<float>& values) {
  Times times;
  times.flow = at::empty({std::ssize(values)}, at::kFloat);
  std::copy(values.begin(), values.end(), times.flow.mutable_data_ptr<float>());
  return times;
}

Times discrete_times(const std::vector<int64_t>& values) {
  Times times;
  times.steps = at::empty({std::ssize(values)}, at::kLong);
  std::copy(values.begin(), values.end(), times.steps.mutable_data_ptr<int64_t>());
  return times;
}

}  // namespace

DiffusionObjective::DiffusionObjective(const spec::ObjectiveOptions& options, bool learned_variance)
    : options_(options), learned_variance_(learned_variance) {
  if (options.kind != "ddpm") return;
  schedule_ = make_noise_schedule(schedule_options(options));
  check_prediction(*schedule_, prediction(), "objective.prediction");
  if (learned_variance) posterior_ = make_posterior_tables(*schedule_);
}

double DiffusionObjective::shift(int64_t image_tokens) const {
  return flow_shift(options_, image_tokens);
}

Prediction DiffusionObjective::prediction() const {
  if (options_.prediction == "noise") return Prediction::kNoise;
  return options_.prediction == "velocity" ? Prediction::kVelocity : Prediction::kSample;
}

Times DiffusionObjective::draw_times(std::span<const uint64_t> draw_keys, int64_t image_tokens) const {
  if (is_flow()) {
    std::vector<float> values;
    for (const uint64_t key : draw_keys) values.push_back(draw_time(options_, key, image_tokens));
    return flow_times(values);
  }
  std::vector<int64_t> values;
  for (const uint64_t key : draw_keys) {
    Rng rng({key, static_cast<uint64_t>(Draw::kTime)});
    values.push_back(static_cast<int64_t>(rng.below(static_cast<uint64_t>(options_.train_steps))));
  }
  return discrete_times(values);
}

Times DiffusionObjective::times_at(std::span<const double> quantiles, int64_t image_tokens) const {
  if (is_flow()) {
    std::vector<float> values;
    for (const double quantile : quantiles)
      values.push_back(validation_time(options_, quantile, image_tokens));
    return flow_times(values);
  }
  std::vector<int64_t> values;
  for (const double quantile : quantiles)
    values.push_back(validation_timestep(quantile, options_.train_steps));
  return discrete_times(values);
}

at::Tensor DiffusionObjective::network_time(const Times& times) const {
  return is_flow() ? times.flow * kNetworkScale : times.steps.to(at::kFloat);
}

at::Tensor DiffusionObjective::noisy(const at::Tensor& x0, const at::Tensor& noise,
                                     const Times& times) const {
  if (!is_flow()) return add_noise(*schedule_, x0, noise, times.steps);
  return interpolate(x0.flatten(1).unsqueeze(1), noise.flatten(1).unsqueeze(1), times.flow).view(x0.sizes());
}

at::Tensor DiffusionObjective::losses(const at::Tensor& prediction, const at::Tensor& x0,
                                      const at::Tensor& noise, const Times& times) const {
  if (options_.extension)
    return extension_losses(options_, prediction, x0, noise, is_flow() ? times.flow : times.steps);
  if (is_flow()) {
    const auto rows = [](const at::Tensor& x) { return x.flatten(1).unsqueeze(1); };
    return item_losses(options_, rows(prediction), rows(x0), rows(noise), times.flow);
  }
  if (learned_variance_) {
    const auto parts = learned_variance_losses(*schedule_, posterior_, prediction, x0, noise, times.steps);
    return parts.mse + parts.vb;
  }
  return ddpm_losses(*schedule_, this->prediction(), prediction, x0, noise, times.steps,
                     options_.min_snr_gamma);
}

}  // namespace chiliad::objective
