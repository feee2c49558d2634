#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace chiliad::objective {

/// How beta grows with the time. Source: linear: Ho et al. 2020; scaled linear: latent diffusion, linear in
/// the root; squared cosine: Nichol and Dhariwal 2021, beta at most 0.999.
enum class BetaSchedule { kLinear, kScaledLinear, kSquaredCosine };

/// What a network of a discrete diffusion puts out: the noise, v = a noise - s x0, or the sample x0.
enum class Prediction { kNoise, kVelocity, kSample };

struct NoiseScheduleOptions {
  BetaSchedule schedule = BetaSchedule::kLinear;
  double beta_start = 1e-4;  ///< not of kSquaredCosine
  double beta_end = 0.02;    ///< not of kSquaredCosine
  int64_t train_steps = 1000;
  bool zero_terminal_snr = false;  ///< rescaled so that the last time is noise alone (Lin et al. 2023)
};

/// Tables of x_t = a_t x0 + s_t noise over the times 0 (nearly data) to train_steps - 1 (nearly noise), with
/// a_t^2 + s_t^2 = 1. All in fp64.
struct NoiseSchedule {
  std::vector<double> betas;           ///< [T]
  std::vector<double> alphas_cumprod;  ///< a_t^2, [T]
  std::vector<double> signal;          ///< a_t, [T]
  std::vector<double> noise;           ///< s_t, [T]

  [[nodiscard]] int64_t train_steps() const { return static_cast<int64_t>(betas.size()); }
  /// (a_t / s_t)^2
  [[nodiscard]] double snr(int64_t t) const;
};

/// Throws InvalidInput for betas outside (0, 1), a start above the end, or fewer than 2 times.
[[nodiscard]] NoiseSchedule make_noise_schedule(const NoiseScheduleOptions& options);

/// Throws InvalidInput where the schedule ends at SNR 0 and the network predicts noise: it is then given
/// noise and asked for it, which says nothing about the sample.
void check_prediction(const NoiseSchedule& schedule, Prediction prediction, std::string_view place);

/// Weight of the squared error of `prediction` at time t that caps the weight in sample space at `gamma`:
/// min(SNR, gamma) for x0, divided by SNR for the noise and by SNR + 1 for v.   Source: Hang et al. 2023.
[[nodiscard]] double min_snr_weight(const NoiseSchedule& schedule, Prediction prediction, int64_t t,
                                    double gamma);

}  // namespace chiliad::objective
