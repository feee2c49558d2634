#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "chiliad/objective/noise_schedule.h"

namespace chiliad::objective {

/// The Gaussian q(x_{t-1} | x_t, x0) by time, and the bounds of a learned variance. All [T].
struct PosteriorTables {
  std::vector<double> mean_x0;               ///< factor of x0 in the mean
  std::vector<double> mean_xt;               ///< factor of x_t in the mean
  std::vector<double> log_variance_clipped;  ///< t = 0, whose variance is 0, takes the value of t = 1
  std::vector<double> log_beta;
};
[[nodiscard]] PosteriorTables make_posterior_tables(const NoiseSchedule& schedule);

/// Log variance that the other half v of a network's channels means: a mix of log_variance_clipped (v = -1)
/// and log_beta (v = 1).   Source: Nichol and Dhariwal 2021, learned range.
[[nodiscard]] at::Tensor learned_log_variance(const PosteriorTables& tables, const at::Tensor& variance,
                                              const at::Tensor& timesteps);

/// Terms of each item, [B]. kl and nll are means over the item's values in bits.
struct LearnedVarianceLosses {
  at::Tensor mse;  ///< of the noise
  at::Tensor kl;   ///< between the true and the predicted step
  at::Tensor nll;  ///< of x0 in bins of 2/255 under the predicted step: the last step of the chain
  at::Tensor vb;   ///< nll at t = 0, else kl
};
/// Objective of DiT: an item's loss is mse + vb. The predicted mean is held fixed in vb, which so trains the
/// variance alone.
/// x0, noise: [B, C, ...], x0 in [-1, 1]; model_output: [B, 2 C, ...], noise then variance; timesteps: [B]
/// int64 on the host. Computed in fp64 (probabilities of bins cancel in the tails), given in model_output's
/// type.
[[nodiscard]] LearnedVarianceLosses learned_variance_losses(const NoiseSchedule& schedule,
                                                            const PosteriorTables& tables,
                                                            const at::Tensor& model_output,
                                                            const at::Tensor& x0, const at::Tensor& noise,
                                                            const at::Tensor& timesteps);

}  // namespace chiliad::objective
