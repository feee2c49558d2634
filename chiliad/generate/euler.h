#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "chiliad/generate/sampler.h"

namespace chiliad::generate {

/// Times of an Euler sampler from noise to data: steps + 1 values from 1 to 0, with the static shift.
/// Source: FlowMatchEulerDiscreteScheduler given even sigmas (objective/flow_schedule.h).
[[nodiscard]] std::vector<double> euler_times(int steps, double shift);

/// x + (next - sigma) * velocity, fp32.
[[nodiscard]] at::Tensor euler_step(const at::Tensor& x, const at::Tensor& velocity, double sigma,
                                    double next);

/// Euler steps of flow matching; the network puts out the velocity, noise - x0.
class EulerSampler final : public Sampler {
 public:
  /// sigmas: [steps + 1], from noise to data. time_scale: what the network's times are a multiple of, 1 for
  /// ours and 1000 for those of diffusers.
  explicit EulerSampler(std::vector<double> sigmas, double time_scale = 1.0);

  [[nodiscard]] const std::vector<double>& times() const override { return times_; }
  [[nodiscard]] at::Tensor step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                                SamplerState& state) const override;

 private:
  std::vector<double> sigmas_;
  std::vector<double> times_;
};

}  // namespace chiliad::generate
