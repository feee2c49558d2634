#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/base/host_array.h"
#include "chiliad/generate/inference_model.h"
#include "chiliad/generate/sampler.h"

namespace chiliad::generate {

/// One picture to make.
struct Request {
  std::string prompt;
  int32_t width = 0;
  int32_t height = 0;
  uint64_t seed = 0;  ///< of its noise
};

struct SamplerOptions {
  int steps = 30;
  double guidance = 2.0;  ///< 1: none
  int max_batch = 32;
};

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

/// Makes pictures, uint8 [H, W, 3] each, in the order of the requests; a picture depends on its request
/// alone, up to rounding by the batch it was in. Requests of equal size run together. Sides must be multiples
/// of the patch.
[[nodiscard]] std::vector<HostArray> sample(const InferenceModel& model, const std::vector<Request>& requests,
                                            const SamplerOptions& options,
                                            const std::function<void(int64_t, int64_t)>& progress);

}  // namespace chiliad::generate
