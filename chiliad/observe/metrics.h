#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/observe/time_account.h"

namespace chiliad::observe {

/// The loader of the rank that measured, as it is now or since the start.
struct LoaderMetrics {
  int64_t threads = 0;
  int64_t prefetch_steps = 0;
  int64_t tuner_changes = 0;
  int64_t bytes = 0;  ///< of batches: ready, in use, or kept
  int64_t slow_items = 0;
  int64_t wait_alarms = 0;
  std::string bottleneck;  ///< over the same steps as the line
  bool operator==(const LoaderMetrics&) const = default;
};

/// Seconds that layers took.
struct PassSeconds {
  double forward = 0.0;
  double backward = 0.0;
  PassSeconds& operator+=(const PassSeconds& more) {
    forward += more.forward;
    backward += more.backward;
    return *this;
  }
  bool operator==(const PassSeconds&) const = default;
};
/// By component of the model ("backbone").
using ComponentSeconds = std::map<std::string, PassSeconds>;

/// One line of metrics.jsonl: means and sums over the steps since the line before. docs/formats/metrics.md.
struct StepMetrics {
  int64_t step = 0;   ///< steps done
  int64_t steps = 0;  ///< of the whole run
  int64_t epoch = 0;
  int rank = 0;            ///< who measured the times
  double loss = 0.0;       ///< mean over the items
  double grad_norm = 0.0;  ///< before clipping, of the last step
  double lr = 0.0;
  int64_t items = 0;                       ///< consumed since the line before, over all ranks
  int64_t bad_items = 0;                   ///< of them, of weight 0
  double wall = 0.0;                       ///< seconds since the line before
  std::array<double, kNumRows> seconds{};  ///< rows of the time account, over the same steps
  double other = 0.0;                      ///< remainder, seconds
  ComponentSeconds components;             ///< what forward and backward are made of, but for the loss
  double cpu = 0.0;                        ///< CPU seconds of all threads of the rank, over the same steps
  std::map<std::string, int64_t> sent;     ///< bytes that the rank sent, by kind of traffic ("gather")
  std::map<std::string, int64_t> sent_by_tier;  ///< the same by how far they went ("machine", "network")
  double imbalance = 1.0;                       ///< predicted, max over mean of the ranks' work
  double items_per_s = 0.0;
  double flops = 0.0;       ///< of the model over the same steps, all ranks
  int64_t peak_memory = 0;  ///< bytes of tensors at once, of the rank that measured; 0: not measured
  double peak_flops = 0.0;  ///< FLOP/s that all ranks together can do, as measured; 0: not known
  std::optional<LoaderMetrics> loader;
  std::optional<double> validation_loss;  ///< of the held-out items, where they were evaluated at this step
  std::vector<double> validation_loss_by_time;  ///< the same by quarters of the times, from data to noise
  std::optional<double> mfu;                    ///< flops over wall and peak_flops, where that is known

  bool operator==(const StepMetrics&) const = default;
  /// One line of JSON. Numbers that are not finite become null.
  [[nodiscard]] std::string to_json() const;
  /// Unknown keys are ignored, missing ones keep their defaults (null: NaN). Throws CorruptData if it is not
  /// an object of numbers.
  [[nodiscard]] static StepMetrics from_json(const std::string& text);
};

}  // namespace chiliad::observe
