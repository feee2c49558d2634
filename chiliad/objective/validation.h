#pragma once

#include <cstdint>
#include <map>
#include <span>
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
  int repeat = 0;         ///< in [0, draws_per_item)
  double quantile = 0.0;  ///< of the time, in (0, 1)
  uint64_t draw_key = 0;  ///< in place of the item's own: what keys its noise
};

/// Draws of a validation set, so that its loss can be compared between steps, layouts and runs: the draws of
/// an item depend on the set of keys, its own key and the seed alone, never on the step, rank or batch.
/// The (0, 1) range is cut into one stratum for each draw and every stratum has one draw, so that a mean over
/// the set is a mean over all times; an item's own draws are spread over the range.
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

/// Sums of losses by equal ranges of the time's quantile, from data to noise.
class LossByTime {
 public:
  explicit LossByTime(int num_bins) : sums_(2 * static_cast<size_t>(num_bins), 0.0) {}

  /// weight: 0 where another rank counts the item.
  void add(double quantile, double weighted_loss, double weight);
  /// Loss and weight of each bin: sums over ranks add up.   sizes: [2 * num_bins]
  [[nodiscard]] std::span<double> sums() { return sums_; }
  /// Not a number where a bin has no item.   returns: [num_bins]
  [[nodiscard]] std::vector<double> means() const;

 private:
  std::vector<double> sums_;
};

}  // namespace chiliad::objective
