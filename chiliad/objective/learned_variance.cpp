#include "chiliad/objective/learned_variance.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chiliad/base/error.h"
#include "chiliad/objective/ddpm.h"

namespace chiliad::objective {
namespace {

/// Half the width of a bin of 8-bit values in [-1, 1].
constexpr double kHalfBin = 1.0 / 255.0;
/// Beyond it a value belongs to the first or last bin, which are open.
constexpr double kLastBin = 0.999;
constexpr double kLeastProbability = 1e-12;

/// KL(N(mean, e^log_variance) || N(other_mean, e^other_log_variance)) in nats.
at::Tensor gaussian_kl(const at::Tensor& mean, const at::Tensor& log_variance, const at::Tensor& other_mean,
                       const at::Tensor& other_log_variance) {
  return 0.5 * (other_log_variance - log_variance + (log_variance - other_log_variance).exp() - 1.0 +
                (mean - other_mean).square() * (-other_log_variance).exp());
}

/// The tanh form that published weights were trained with.
at::Tensor approximate_normal_cdf(const at::Tensor& z) {
  return 0.5 * (1.0 + (std::sqrt(2.0 / std::numbers::pi) * (z + 0.044715 * z * z * z)).tanh());
}

/// -log of the probability of x's bin under N(mean, e^log_variance), in nats.
at::Tensor binned_nll(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& log_variance) {
  const at::Tensor inverse = (-0.5 * log_variance).exp();
  const at::Tensor upper = approximate_normal_cdf(inverse * (x - mean + kHalfBin));
  const at::Tensor lower = approximate_normal_cdf(inverse * (x - mean - kHalfBin));
  const at::Tensor probability =
      at::where(x < -kLastBin, upper, at::where(x > kLastBin, 1.0 - lower, upper - lower));
  return -probability.clamp_min(kLeastProbability).log();
}

at::Tensor bits_per_value(const at::Tensor& nats) {
  return nats.flatten(1).mean(1) / std::numbers::ln2;
}

}  // namespace

PosteriorTables make_posterior_tables(const NoiseSchedule& schedule) {
  PosteriorTables tables;
  double before = 1.0;
  double variance_at_one = 0.0;
  for (size_t t = 0; t < schedule.betas.size(); ++t) {
    const double beta = schedule.betas[t];
    const double rest = 1.0 - schedule.alphas_cumprod[t];
    const double variance = beta * (1.0 - before) / rest;
    if (t == 1) variance_at_one = variance;
    tables.mean_x0.push_back(beta * std::sqrt(before) / rest);
    tables.mean_xt.push_back((1.0 - before) * std::sqrt(1.0 - beta) / rest);
    tables.log_variance_clipped.push_back(std::log(variance));
    tables.log_beta.push_back(std::log(beta));
    before = schedule.alphas_cumprod[t];
  }
  tables.log_variance_clipped[0] = std::log(variance_at_one);
  return tables;
}

at::Tensor learned_log_variance(const PosteriorTables& tables, const at::Tensor& variance,
                                const at::Tensor& timesteps) {
  const at::Tensor share = (variance + 1.0) / 2.0;
  return share * table_factor(tables.log_beta, timesteps, variance) +
         (1.0 - share) * table_factor(tables.log_variance_clipped, timesteps, variance);
}

LearnedVarianceLosses learned_variance_losses(const NoiseSchedule& schedule, const PosteriorTables& tables,
                                              const at::Tensor& model_output, const at::Tensor& data,
                                              const at::Tensor& added_noise, const at::Tensor& timesteps) {
  const int64_t channels = data.size(1);
  CHILIAD_CHECK_EQ(model_output.size(1), 2 * channels);
  const at::Tensor output = model_output.to(at::kDouble);
  const at::Tensor x0 = data.to(at::kDouble);
  const at::Tensor noise = added_noise.to(at::kDouble);
  const at::Tensor predicted = output.narrow(1, 0, channels);
  const at::Tensor x_t = add_noise(schedule, x0, noise, timesteps);
  const at::Tensor log_variance =
      learned_log_variance(tables, output.narrow(1, channels, channels), timesteps);
  const auto fixed =
      split_prediction(schedule, Prediction::kNoise, predicted.detach(), x_t, timesteps);  // x0 not clipped
  const at::Tensor factor_x0 = table_factor(tables.mean_x0, timesteps, x0);
  const at::Tensor factor_xt = table_factor(tables.mean_xt, timesteps, x0);
  const at::Tensor mean = factor_x0 * fixed.x0 + factor_xt * x_t;
  const at::Tensor true_mean = factor_x0 * x0 + factor_xt * x_t;
  const at::Tensor true_log_variance = table_factor(tables.log_variance_clipped, timesteps, x0);

  LearnedVarianceLosses losses;
  losses.mse = (predicted - noise).square().flatten(1).mean(1);
  losses.kl = bits_per_value(gaussian_kl(true_mean, true_log_variance, mean, log_variance));
  losses.nll = bits_per_value(binned_nll(x0, mean, log_variance));
  losses.vb = at::where(timesteps.to(x0.device()) == 0, losses.nll, losses.kl);
  for (auto* loss : {&losses.mse, &losses.kl, &losses.nll, &losses.vb})
    *loss = loss->to(model_output.scalar_type());
  return losses;
}

}  // namespace chiliad::objective
