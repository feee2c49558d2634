#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace chiliad::objective {

/// Density of training times (SD3, section 3.1).
enum class TimeDensity { kLogitNormal, kUniform, kMode };

struct TimeDensityOptions {
  TimeDensity density = TimeDensity::kLogitNormal;
  double logit_mean = 0.0;   ///< of kLogitNormal
  double logit_std = 1.0;    ///< of kLogitNormal
  double mode_scale = 1.29;  ///< of kMode
};

/// The time that a draw stands for: a standard normal for kLogitNormal, else a uniform one in [0, 1).
/// Source: diffusers compute_density_for_timestep_sampling.
[[nodiscard]] double density_time(const TimeDensityOptions& options, double draw);

/// Weight of a squared velocity error at `sigma` (SD3); kSigmaSqrt needs sigma > 0.
/// Source: diffusers compute_loss_weighting_for_sd3.
enum class LossWeighting { kNone, kSigmaSqrt, kCosMap };
[[nodiscard]] double loss_weight(LossWeighting weighting, double sigma);

/// s t / (1 + (s - 1) t): moves times in (0, 1] towards noise for s > 1; 0 and 1 stay.
[[nodiscard]] double shift_time(double t, double shift);

/// Resolution-dependent shift: mu grows linearly with the number of image tokens, and the shift is exp(mu).
struct DynamicShift {
  int64_t base_tokens = 256;
  int64_t max_tokens = 4096;
  double base_mu = 0.5;
  double max_mu = 1.15;
};
/// Source: Flux and diffusers calculate_shift.
[[nodiscard]] double dynamic_mu(const DynamicShift& options, int64_t tokens);

/// Sigmas of `train_steps` discrete training times, from 1 downwards; the timesteps are sigma * train_steps.
/// returns: [train_steps].   Source: FlowMatchEulerDiscreteScheduler.
[[nodiscard]] std::vector<double> training_sigmas(int64_t train_steps, double shift);
/// Entry of that table for a time in [0, 1]: the whole part of u * train_steps in fp32, at most train_steps
/// - 1.
[[nodiscard]] int64_t table_index(float u, int64_t train_steps);

/// Sampling times before the shift: 1, 1 - 1 / steps, ..., 1 / steps.   returns: [steps]
[[nodiscard]] std::vector<double> even_sigmas(int steps);
/// Sampling times as FlowMatchEulerDiscreteScheduler.set_timesteps(steps) takes them: even from 1 to the last
/// value of the training table, which has the shift already. sampler_sigmas shifts them a second time; only
/// for parity. returns: [steps]
[[nodiscard]] std::vector<double> table_range_sigmas(int steps, int64_t train_steps, double shift);
/// Shifts every one and appends 0, the data.   returns: [size + 1]
[[nodiscard]] std::vector<double> sampler_sigmas(std::span<const double> unshifted, double shift);

}  // namespace chiliad::objective
