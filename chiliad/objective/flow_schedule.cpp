#include "chiliad/objective/flow_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chiliad/base/error.h"

namespace chiliad::objective {

double density_time(const TimeDensityOptions& options, double draw) {
  switch (options.density) {
    case TimeDensity::kLogitNormal:
      return 1.0 / (1.0 + std::exp(-(options.logit_mean + options.logit_std * draw)));
    case TimeDensity::kUniform:
      return draw;
    case TimeDensity::kMode: {
      const double cosine = std::cos(std::numbers::pi * draw / 2.0);
      return 1.0 - draw - options.mode_scale * (cosine * cosine - 1.0 + draw);
    }
  }
  throw InternalError("objective", "density without a formula");
}

double loss_weight(LossWeighting weighting, double sigma) {
  switch (weighting) {
    case LossWeighting::kNone:
      return 1.0;
    case LossWeighting::kSigmaSqrt:
      return 1.0 / (sigma * sigma);
    case LossWeighting::kCosMap:
      return 2.0 / (std::numbers::pi * (1.0 - 2.0 * sigma + 2.0 * sigma * sigma));
  }
  throw InternalError("objective", "weighting without a formula");
}

double shift_time(double t, double shift) {
  return shift * t / (1.0 + (shift - 1.0) * t);
}

double dynamic_mu(const DynamicShift& options, int64_t tokens) {
  const double slope =
      (options.max_mu - options.base_mu) / static_cast<double>(options.max_tokens - options.base_tokens);
  return options.base_mu + slope * static_cast<double>(tokens - options.base_tokens);
}

std::vector<double> training_sigmas(int64_t train_steps, double shift) {
  std::vector<double> sigmas;
  for (int64_t i = train_steps; i > 0; --i) {
    sigmas.push_back(shift_time(static_cast<double>(i) / static_cast<double>(train_steps), shift));
  }
  return sigmas;
}

int64_t table_index(float u, int64_t train_steps) {
  const auto index = static_cast<int64_t>(u * static_cast<float>(train_steps));
  return std::clamp<int64_t>(index, 0, train_steps - 1);
}

std::vector<double> even_sigmas(int steps) {
  std::vector<double> sigmas;
  for (int i = 0; i < steps; ++i) sigmas.push_back(1.0 - static_cast<double>(i) / steps);
  return sigmas;
}

std::vector<double> table_range_sigmas(int steps, int64_t train_steps, double shift) {
  CHILIAD_CHECK_GT(steps, 0);
  const double least = shift_time(1.0 / static_cast<double>(train_steps), shift);
  std::vector<double> sigmas;
  for (int i = 0; i < steps; ++i) {
    sigmas.push_back(steps == 1 ? 1.0 : 1.0 + (least - 1.0) * static_cast<double>(i) / (steps - 1));
  }
  return sigmas;
}

std::vector<double> sampler_sigmas(std::span<const double> unshifted, double shift) {
  std::vector<double> sigmas;
  for (const double sigma : unshifted) sigmas.push_back(shift_time(sigma, shift));
  sigmas.push_back(0.0);
  return sigmas;
}

}  // namespace chiliad::objective
