#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "chiliad/spec/options/objective.h"

namespace chiliad::objective {

struct ValidationOptions {
  uint64_t seed = 0;       ///< fixed for all runs that are compared
  int draws_per_item = 1;  ///< times and noises at which each item is measured
};

/// One measurement: an item at a time with a noise.
struct ValidationDraw {
  uint64_t item_key = 0;
  int repeat = 0;           ///< in [0, draws_per_item)
  double quantile = 0.0;    ///< of the time, in (0, 1)
  uint64_t noise_seed = 0;  ///< names the noise
};

/// Draws of a validation set, so that its loss can be compared between steps, layouts and runs: the draws of
/// an item depend on the set of keys, its own key and the seed alone, never on the step, rank or batch.
/// The (0, 1) range is cut into one stratum for each draw and every stratum has one draw; an item's own draws
/// are spread over the range.
/// item_keys: one for each item of the whole set, in any order; the same on every rank. They must be stable
/// (a hash of the item's name), not a training draw key, which changes by epoch.
/// returns: by item key, draws_per_item each. Throws InvalidInput for a key that occurs twice.
[[nodiscard]] std::map<uint64_t, std::vector<ValidationDraw>> make_validation_draws(
    std::span<const uint64_t> item_keys, const ValidationOptions& options);

/// Time of flow matching at a quantile of the training density, with the shift of training.
/// image_tokens: of the item, for the dynamic shift.
[[nodiscard]] float validation_time(const spec::ObjectiveOptions& options, double quantile,
                                    int64_t image_tokens = 0);
/// Whole time of a discrete diffusion at a quantile of the uniform density.
[[nodiscard]] int64_t validation_timestep(double quantile, int64_t train_steps);

/// Standard normal [B, count], row i of draws[i].
[[nodiscard]] at::Tensor validation_noise(std::span<const ValidationDraw> draws, int64_t count);

/// Collects losses of draws and adds them up in the order of their keys, so that the sum has the same bits
/// whatever the order of batches and the number of ranks. Give each rank's entries to one of them.
class ValidationLosses {
 public:
  explicit ValidationLosses(int num_bins = 4) : num_bins_(num_bins) {}

  /// Throws InternalError if the draw has a loss already.
  void add(const ValidationDraw& draw, double loss);
  void merge(const ValidationLosses& other);

  [[nodiscard]] int64_t size() const { return static_cast<int64_t>(losses_.size()); }
  /// Mean over all draws; not a number without any.
  [[nodiscard]] double mean() const;
  /// Means by equal ranges of the quantile, from data to noise.   returns: [num_bins]
  [[nodiscard]] std::vector<double> means_by_time() const;

 private:
  struct Entry {
    double quantile = 0.0;
    double loss = 0.0;
  };
  int num_bins_;
  std::map<std::pair<uint64_t, int>, Entry> losses_;  ///< by item key and repeat
};

}  // namespace chiliad::objective
