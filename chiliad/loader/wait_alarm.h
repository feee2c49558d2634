#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiliad/loader/loader_options.h"

namespace chiliad::loader {

/// What keeps the steps back.
enum class Bottleneck { kNone, kReading, kDecoding, kWords, kPlanning, kMemory, kAhead };
/// "reading", "decoding", "words", "planning", "memory budget", "steps ahead"; "none".
[[nodiscard]] const char* bottleneck_name(Bottleneck bottleneck);

/// Judges from what happened between two snapshots, `seconds` apart. What it says presupposes that the
/// consumer waited.
[[nodiscard]] Bottleneck find_bottleneck(const LoaderStats& before, const LoaderStats& after, double seconds);

/// Tells once when the consumer waits for more than a share of the time, and what to change; again only after
/// the share fell below half of that. Pure.
class WaitAlarm {
 public:
  /// share: of the time of `num_steps` steps.
  explicit WaitAlarm(double share, int64_t num_steps = 50) : share_(share), num_steps_(num_steps) {}

  /// seconds: of the whole step. Returns what to tell, if anything.
  [[nodiscard]] std::optional<std::string> add_step(double seconds, double waited, const LoaderStats& stats);
  [[nodiscard]] int64_t num_alarms() const { return num_alarms_; }

 private:
  double share_;
  int64_t num_steps_;
  LoaderStats before_;
  bool has_before_ = false;  // the first step, which waits for the first data, is left out
  int64_t steps_ = 0;
  double seconds_ = 0.0;
  double waited_ = 0.0;
  bool told_ = false;
  int64_t num_alarms_ = 0;
};

}  // namespace chiliad::loader
