#include "chiliad/objective/ddpm.h"

#include <ATen/ATen.h>

#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::objective {
namespace {

std::vector<double> min_snr_table(const NoiseSchedule& schedule, Prediction prediction, double gamma) {
  std::vector<double> weights;
  for (int64_t t = 0; t < schedule.train_steps(); ++t)
    weights.push_back(min_snr_weight(schedule, prediction, t, gamma));
  return weights;
}

}  // namespace

at::Tensor table_factor(std::span<const double> table, const at::Tensor& timesteps, const at::Tensor& like) {
  CHILIAD_CHECK_EQ(timesteps.numel(), like.size(0));
  const at::Tensor times = timesteps.contiguous();
  at::Tensor values = at::empty({times.numel()}, at::kDouble);
  const auto* from = times.const_data_ptr<int64_t>();
  auto* to = values.mutable_data_ptr<double>();
  for (int64_t i = 0; i < times.numel(); ++i) {
    CHILIAD_CHECK(from[i] >= 0 && from[i] < static_cast<int64_t>(table.size()), "time {} of {}", from[i],
                  table.size());
    to[i] = table[static_cast<size_t>(from[i])];
  }
  std::vector<int64_t> shape(static_cast<size_t>(like.dim()), 1);
  shape[0] = times.numel();
  return values.to(like.options()).view(shape);
}

at::Tensor add_noise(const NoiseSchedule& schedule, const at::Tensor& x0, const at::Tensor& noise,
                     const at::Tensor& timesteps) {
  return table_factor(schedule.signal, timesteps, x0) * x0 +
         table_factor(schedule.noise, timesteps, x0) * noise;
}

at::Tensor ddpm_target(const NoiseSchedule& schedule, Prediction prediction, const at::Tensor& x0,
                       const at::Tensor& noise, const at::Tensor& timesteps) {
  switch (prediction) {
    case Prediction::kNoise:
      return noise;
    case Prediction::kSample:
      return x0;
    case Prediction::kVelocity:
      return table_factor(schedule.signal, timesteps, x0) * noise -
             table_factor(schedule.noise, timesteps, x0) * x0;
  }
  throw InternalError("objective", "prediction without a target");
}

SampleAndNoise split_prediction(const NoiseSchedule& schedule, Prediction prediction,
                                const at::Tensor& predicted, const at::Tensor& x_t,
                                const at::Tensor& timesteps) {
  const at::Tensor a = table_factor(schedule.signal, timesteps, x_t);
  const at::Tensor s = table_factor(schedule.noise, timesteps, x_t);
  switch (prediction) {
    case Prediction::kNoise:
      return {(x_t - s * predicted) / a, predicted};
    case Prediction::kSample:
      return {predicted, (x_t - a * predicted) / s};
    case Prediction::kVelocity:
      return {a * x_t - s * predicted, a * predicted + s * x_t};
  }
  throw InternalError("objective", "prediction without a meaning");
}

at::Tensor ddpm_losses(const NoiseSchedule& schedule, Prediction prediction, const at::Tensor& predicted,
                       const at::Tensor& x0, const at::Tensor& noise, const at::Tensor& timesteps,
                       double min_snr_gamma) {
  const at::Tensor target = ddpm_target(schedule, prediction, x0, noise, timesteps);
  const at::Tensor losses = (predicted - target).square().flatten(1).mean(1);  // [B]
  if (min_snr_gamma <= 0.0) return losses;
  return losses * table_factor(min_snr_table(schedule, prediction, min_snr_gamma), timesteps, losses);
}

}  // namespace chiliad::objective
