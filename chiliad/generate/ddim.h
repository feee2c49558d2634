#pragma once

#include <vector>

#include "chiliad/generate/sampler.h"
#include "chiliad/objective/noise_schedule.h"

namespace chiliad::generate {

struct DdimOptions {
  int steps = 50;
  objective::Prediction prediction = objective::Prediction::kNoise;
  TimeSpacing spacing = TimeSpacing::kLeading;
  int64_t steps_offset = 0;      ///< of kLeading: added to every time
  double eta = 0.0;              ///< 0: no noise; 1: the posterior's, which is ancestral sampling
  double clip = 0.0;             ///< predicted samples are held in [-clip, clip]; 0: not
  bool final_signal_one = true;  ///< the last step lands on the sample; false: at time 0 (`set_alpha_to_one`)
};

/// DDIM (Song et al. 2021). The time before t is t - train_steps / steps, rounded down, as diffusers has it,
/// also where the spacing is uneven.
class DdimSampler final : public Sampler {
 public:
  /// Throws InvalidInput for steps outside [1, train_steps], times past the table, eta outside [0, 1], or a
  /// prediction that the schedule does not allow.
  DdimSampler(objective::NoiseSchedule schedule, const DdimOptions& options);

  [[nodiscard]] const std::vector<double>& times() const override { return times_; }
  [[nodiscard]] at::Tensor step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                                SamplerState& state) const override;

 private:
  /// a_t^2 at the time before the one of step i.
  [[nodiscard]] double kept_after(int64_t i) const;

  objective::NoiseSchedule schedule_;
  DdimOptions options_;
  std::vector<double> times_;
};

}  // namespace chiliad::generate
