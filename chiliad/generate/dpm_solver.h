#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/generate/sampler.h"
#include "chiliad/objective/noise_schedule.h"

namespace chiliad::generate {

/// What a solver knows of a way from noise to data: x = signal * x0 + noise * eps at each of its times.
struct SolverPath {
  std::vector<double> times;   ///< as the network takes them, [steps]
  std::vector<double> signal;  ///< [steps + 1], the last one where the sample is
  std::vector<double> noise;   ///< [steps + 1]
};

/// Noise levels of a discrete diffusion.
enum class SigmaSpacing {
  kTimes,   ///< those of the times that TimeSpacing picks
  kKarras,  ///< even in sigma^(1/7) between the ends of the table (Karras et al. 2022, rho 7)
};
/// Where the last step lands.
enum class FinalSigma {
  kZero,     ///< on the sample
  kSmallest  ///< at the least noise of the table
};

struct DiscretePathOptions {
  int steps = 20;
  TimeSpacing spacing = TimeSpacing::kLinspace;
  SigmaSpacing sigmas = SigmaSpacing::kTimes;
  int64_t steps_offset = 0;  ///< of kLeading
  FinalSigma final_sigma = FinalSigma::kZero;
};
/// A schedule whose last time has SNR 0 is taken to end at a_t^2 = 2^-24, since a solver divides by it.
/// Source: DPMSolverMultistepScheduler. Throws InvalidInput for steps outside [1, train_steps - 1] or times
/// past the table.
[[nodiscard]] SolverPath discrete_path(const objective::NoiseSchedule& schedule,
                                       const DiscretePathOptions& options);

struct FlowPathOptions {
  int steps = 20;
  double shift = 1.0;
  int64_t train_steps = 1000;  ///< scale of the times
  bool whole_times =
      true;  ///< the network gets whole times, rounded down (diffusers), or sigma * train_steps
};
/// x = (1 - sigma) x0 + sigma noise. The first sigma lies just below 1, where there is still a signal.
[[nodiscard]] SolverPath flow_path(const FlowPathOptions& options);

/// What the network puts out; kFlow is noise - x0 on a flow path.
enum class SolverPrediction { kNoise, kVelocity, kSample, kFlow };
enum class SolverForm { kMidpoint, kHeun };

struct DpmSolverOptions {
  SolverPrediction prediction = SolverPrediction::kNoise;
  SolverForm form = SolverForm::kMidpoint;
  /// The last step is of first order when there are fewer than 15; it always is when it lands on the sample.
  bool lower_order_final = true;
};

/// DPM-Solver++ 2M (Lu et al. 2022): second order, one call of the network a step.
class DpmSolver final : public Sampler {
 public:
  DpmSolver(SolverPath path, const DpmSolverOptions& options);

  [[nodiscard]] const std::vector<double>& times() const override { return path_.times; }
  [[nodiscard]] at::Tensor step(const at::Tensor& model_output, const at::Tensor& x, int64_t i,
                                SamplerState& state) const override;

 private:
  [[nodiscard]] at::Tensor predicted_sample(const at::Tensor& model_output, const at::Tensor& x,
                                            size_t i) const;
  [[nodiscard]] bool is_first_order(size_t i) const;

  SolverPath path_;
  DpmSolverOptions options_;
};

}  // namespace chiliad::generate
