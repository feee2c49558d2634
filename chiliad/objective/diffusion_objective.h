#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "chiliad/objective/learned_variance.h"
#include "chiliad/objective/noise_schedule.h"
#include "chiliad/spec/options/objective.h"

namespace chiliad::objective {

/// Times of a batch.
struct Times {
  at::Tensor flow;   ///< [B] fp32 in (0, 1]: of flow matching
  at::Tensor steps;  ///< [B] int64 on the host: of a discrete diffusion
};

/// What section `objective` means for samples of any shape [B, ...]: times, noisy samples, losses. Immutable;
/// thread-safe.
class DiffusionObjective {
 public:
  /// learned_variance: predictions have a second half of channels.
  DiffusionObjective(const spec::ObjectiveOptions& options, bool learned_variance);

  /// One time an item, from its key alone. image_tokens: of one item, for the dynamic shift.
  [[nodiscard]] Times draw_times(std::span<const uint64_t> draw_keys, int64_t image_tokens) const;
  /// The times at quantiles of their density, one an item.
  [[nodiscard]] Times times_at(std::span<const double> quantiles, int64_t image_tokens) const;
  /// As networks of diffusers take them, 0 to 1000: [B] fp32.
  [[nodiscard]] at::Tensor network_time(const Times& times) const;
  [[nodiscard]] at::Tensor noisy(const at::Tensor& x0, const at::Tensor& noise, const Times& times) const;
  /// Loss of each item, [B], with a graph to the prediction.
  [[nodiscard]] at::Tensor losses(const at::Tensor& prediction, const at::Tensor& x0, const at::Tensor& noise,
                                  const Times& times) const;

  [[nodiscard]] bool is_flow() const { return !schedule_.has_value(); }
  [[nodiscard]] const spec::ObjectiveOptions& options() const { return options_; }
  /// Of a discrete diffusion.
  [[nodiscard]] const NoiseSchedule& schedule() const { return schedule_.value(); }
  [[nodiscard]] Prediction prediction() const;
  [[nodiscard]] bool learned_variance() const { return learned_variance_; }
  /// Of flow matching.
  [[nodiscard]] double shift(int64_t image_tokens) const;

 private:
  spec::ObjectiveOptions options_;
  bool learned_variance_;
  std::optional<NoiseSchedule> schedule_;
  PosteriorTables posterior_;
};

}  // namespace chiliad::objective
