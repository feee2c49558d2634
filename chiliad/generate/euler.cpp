#include "chiliad/generate/euler.h"

#include <ATen/ATen.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/objective/flow_schedule.h"

namespace chiliad::generate {

std::vector<double> euler_times(int steps, double shift) {
  return objective::sampler_sigmas(objective::even_sigmas(steps), shift);
}

at::Tensor euler_step(const at::Tensor& x, const at::Tensor& velocity, double sigma, double next) {
  return x + velocity * (next - sigma);
}

EulerSampler::EulerSampler(std::vector<double> sigmas, double time_scale) : sigmas_(std::move(sigmas)) {
  CHILIAD_CHECK_GT(sigmas_.size(), 1U);
  times_.assign(sigmas_.begin(), sigmas_.end() - 1);
  for (double& time : times_) time *= time_scale;
}

at::Tensor EulerSampler::step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                              SamplerState& /*state*/) const {
  const auto now = static_cast<size_t>(i);
  CHILIAD_CHECK_LT(now, times_.size());
  return euler_step(x, model_output, sigmas_[now], sigmas_[now + 1]);
}

}  // namespace chiliad::generate
