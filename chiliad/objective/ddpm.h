#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "chiliad/objective/noise_schedule.h"

namespace chiliad::objective {

/// Values of a table at whole times, as a factor of a tensor [B, ...].
/// timesteps: [B] int64 on the host, each in [0, size).   returns: [B, 1, ...], of like's type and device.
[[nodiscard]] at::Tensor table_factor(std::span<const double> table, const at::Tensor& timesteps,
                                      const at::Tensor& like);

/// x_t = a x0 + s noise. x0, noise: [B, ...]; timesteps: [B] int64 on the host, here and below.
[[nodiscard]] at::Tensor add_noise(const NoiseSchedule& schedule, const at::Tensor& x0,
                                   const at::Tensor& noise, const at::Tensor& timesteps);

/// What the network is to put out: noise, x0, or v = a noise - s x0 (Salimans and Ho 2022).
[[nodiscard]] at::Tensor ddpm_target(const NoiseSchedule& schedule, Prediction prediction,
                                     const at::Tensor& x0, const at::Tensor& noise,
                                     const at::Tensor& timesteps);

/// The two ends that a point x_t is made of.
struct SampleAndNoise {
  at::Tensor x0;
  at::Tensor noise;
};
/// What a prediction at x_t means, whatever it was asked for; ddpm_target of the result is any other
/// prediction. A predicted noise at SNR 0 gives no sample: see check_prediction.
[[nodiscard]] SampleAndNoise split_prediction(const NoiseSchedule& schedule, Prediction prediction,
                                              const at::Tensor& predicted, const at::Tensor& x_t,
                                              const at::Tensor& timesteps);

/// Loss of each item, [B]: mean squared error against ddpm_target over the item's values, times
/// min_snr_weight where min_snr_gamma > 0.
[[nodiscard]] at::Tensor ddpm_losses(const NoiseSchedule& schedule, Prediction prediction,
                                     const at::Tensor& predicted, const at::Tensor& x0,
                                     const at::Tensor& noise, const at::Tensor& timesteps,
                                     double min_snr_gamma = 0.0);

}  // namespace chiliad::objective
