#include "chiliad/objective/noise_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "chiliad/base/error.h"

namespace chiliad::objective {
namespace {

void check(const NoiseScheduleOptions& options) {
  if (options.train_steps < 2) {
    throw InvalidInput("train_steps", fmt::format("expected 2 or more, got {}", options.train_steps));
  }
  if (options.schedule == BetaSchedule::kSquaredCosine) return;
  if (!(options.beta_start > 0.0 && options.beta_start <= options.beta_end && options.beta_end < 1.0)) {
    throw InvalidInput("beta_start, beta_end",
                       fmt::format("expected 0 < beta_start <= beta_end < 1, got {} and {}",
                                   options.beta_start, options.beta_end));
  }
}

/// Even from `first` to `last`, both included.
std::vector<double> even(double first, double last, int64_t count) {
  std::vector<double> values;
  const double step = (last - first) / static_cast<double>(count - 1);
  for (int64_t i = 0; i < count; ++i) values.push_back(first + step * static_cast<double>(i));
  values.back() = last;
  return values;
}

double cosine_signal(double time) {
  const double cosine = std::cos((time + 0.008) / 1.008 * std::numbers::pi / 2.0);
  return cosine * cosine;
}

std::vector<double> betas_of(const NoiseScheduleOptions& options) {
  const auto count = options.train_steps;
  switch (options.schedule) {
    case BetaSchedule::kLinear:
      return even(options.beta_start, options.beta_end, count);
    case BetaSchedule::kScaledLinear: {
      auto betas = even(std::sqrt(options.beta_start), std::sqrt(options.beta_end), count);
      for (double& beta : betas) beta *= beta;
      return betas;
    }
    case BetaSchedule::kSquaredCosine: {
      std::vector<double> betas;
      const auto steps = static_cast<double>(count);
      for (int64_t i = 0; i < count; ++i) {
        const auto t = static_cast<double>(i);
        betas.push_back(std::min(1.0 - cosine_signal((t + 1.0) / steps) / cosine_signal(t / steps), 0.999));
      }
      return betas;
    }
  }
  throw InternalError("objective", "schedule without a formula");
}

/// Moves and stretches a_t so that the first stays and the last is 0.
void rescale_to_zero_snr(NoiseSchedule& schedule) {
  const double first = schedule.signal.front();
  const double last = schedule.signal.back();
  double before = 1.0;
  for (size_t t = 0; t < schedule.betas.size(); ++t) {
    const double signal = (schedule.signal[t] - last) * first / (first - last);
    schedule.signal[t] = signal;
    schedule.alphas_cumprod[t] = signal * signal;
    schedule.betas[t] = 1.0 - schedule.alphas_cumprod[t] / before;
    before = schedule.alphas_cumprod[t];
  }
}

}  // namespace

double NoiseSchedule::snr(int64_t t) const {
  const double product = alphas_cumprod.at(static_cast<size_t>(t));
  return product / (1.0 - product);
}

NoiseSchedule make_noise_schedule(const NoiseScheduleOptions& options) {
  check(options);
  NoiseSchedule schedule;
  schedule.betas = betas_of(options);
  double product = 1.0;
  for (const double beta : schedule.betas) {
    product *= 1.0 - beta;
    schedule.alphas_cumprod.push_back(product);
    schedule.signal.push_back(std::sqrt(product));
  }
  if (options.zero_terminal_snr) rescale_to_zero_snr(schedule);
  for (const double kept : schedule.alphas_cumprod) schedule.noise.push_back(std::sqrt(1.0 - kept));
  return schedule;
}

void check_prediction(const NoiseSchedule& schedule, Prediction prediction, std::string_view place) {
  if (prediction != Prediction::kNoise || schedule.signal.back() > 0.0) return;
  throw InvalidInput(
      std::string(place),
      "prediction with zero terminal SNR: expected velocity or sample, got noise, from which no "
      "sample follows at the last time. Train with another prediction, or without the rescale");
}

double min_snr_weight(const NoiseSchedule& schedule, Prediction prediction, int64_t t, double gamma) {
  const double snr = schedule.snr(t);
  const double capped = std::min(snr, gamma);
  switch (prediction) {
    case Prediction::kNoise:
      return snr > gamma ? gamma / snr : 1.0;  // also where the SNR is 0
    case Prediction::kVelocity:
      return capped / (snr + 1.0);
    case Prediction::kSample:
      return capped;
  }
  throw InternalError("objective", "prediction without a weight");
}

}  // namespace chiliad::objective
