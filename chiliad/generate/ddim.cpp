#include "chiliad/generate/ddim.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/objective/ddpm.h"

namespace chiliad::generate {
namespace {

/// Halves go to the even neighbour, as the references round.
double round_even(double value) {
  return std::nearbyint(value);
}

std::vector<double> spaced_times(const DdimOptions& options, int64_t train_steps) {
  const auto total = static_cast<double>(train_steps);
  std::vector<double> times;
  for (int i = 0; i < options.steps; ++i) {
    switch (options.spacing) {
      case TimeSpacing::kLeading:
        times.push_back(static_cast<double>((options.steps - 1 - i) * (train_steps / options.steps) +
                                            options.steps_offset));
        break;
      case TimeSpacing::kTrailing:
        times.push_back(round_even(total - i * (total / options.steps)) - 1.0);
        break;
      case TimeSpacing::kLinspace: {
        const double step = options.steps == 1 ? 0.0 : (total - 1.0) / (options.steps - 1);
        times.push_back(round_even((options.steps - 1 - i) * step));
        break;
      }
    }
  }
  return times;
}

}  // namespace

DdimSampler::DdimSampler(objective::NoiseSchedule schedule, const DdimOptions& options)
    : schedule_(std::move(schedule)), options_(options) {
  const int64_t train_steps = schedule_.train_steps();
  if (options.steps < 1 || options.steps > train_steps)
    throw InvalidInput("ddim.steps", fmt::format("expected 1 to {}, got {}", train_steps, options.steps));
  if (!(options.eta >= 0.0 && options.eta <= 1.0))
    throw InvalidInput("ddim.eta", fmt::format("expected 0 to 1, got {}", options.eta));
  objective::check_prediction(schedule_, options.prediction, "ddim");
  times_ = spaced_times(options, train_steps);
  if (times_.front() >= static_cast<double>(train_steps) || times_.back() < 0.0) {
    throw InvalidInput("ddim.steps_offset", fmt::format("expected times in [0, {}), got {} to {}",
                                                        train_steps, times_.back(), times_.front()));
  }
}

double DdimSampler::kept_after(int64_t i) const {
  const int64_t before =
      static_cast<int64_t>(times_[static_cast<size_t>(i)]) - schedule_.train_steps() / options_.steps;
  if (before >= 0) return schedule_.alphas_cumprod[static_cast<size_t>(before)];
  return options_.final_signal_one ? 1.0 : schedule_.alphas_cumprod[0];
}

at::Tensor DdimSampler::step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                             SamplerState& state) const {
  const auto t = static_cast<int64_t>(times_.at(static_cast<size_t>(i)));
  const double kept = schedule_.alphas_cumprod[static_cast<size_t>(t)];
  const double next = kept_after(i);
  auto parts = objective::split_prediction(schedule_, options_.prediction, model_output, x,
                                           at::full({x.size(0)}, t, at::kLong));
  if (options_.clip > 0.0) parts.x0 = parts.x0.clamp(-options_.clip, options_.clip);
  const double variance = options_.eta * options_.eta * (1.0 - next) / (1.0 - kept) * (1.0 - kept / next);
  const at::Tensor moved = std::sqrt(next) * parts.x0 + std::sqrt(1.0 - next - variance) * parts.noise;
  if (variance <= 0.0) return moved;
  return moved + std::sqrt(variance) * step_noise(state.noise_keys, i, x);
}

}  // namespace chiliad::generate
