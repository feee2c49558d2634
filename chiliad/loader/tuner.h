#pragma once

#include <cstdint>
#include <string>

#include "chiliad/base/clock.h"

namespace chiliad::loader {

/// What tuning sets.
struct TunerSettings {
  int threads = 1;
  int64_t depth = 1;  ///< steps ahead
  bool operator==(const TunerSettings&) const = default;
};

struct TunerLimits {
  int max_threads = 1;
  int64_t max_depth = 64;
};

/// Sums since the start, as of now.
struct TunerInput {
  Nanoseconds now{0};
  Nanoseconds waited{0};            ///< by the consumer
  Nanoseconds busy{0};              ///< by all threads, in items
  Nanoseconds blocked_by_bytes{0};  ///< by the planner: the memory budget was used up
};

/// Chooses threads and depth from the consumer's wait: more as long as it waits, fewer threads once it has
/// not waited for long and those that are left would not be busy. A number of threads that proved too small
/// is not tried again for long. Pure: what it says depends on its inputs alone.
class Tuner {
 public:
  Tuner(const TunerLimits& limits, const TunerSettings& start);

  /// Once for each step that was handed over. Returns whether the settings changed. The first one, which
  /// waits for the first data, is only where counting begins.
  bool add_step(const TunerInput& input);
  [[nodiscard]] const TunerSettings& settings() const { return settings_; }
  [[nodiscard]] int64_t num_changes() const { return num_changes_; }

 private:
  void raise(double load, double blocked);
  void lower(double load);
  void change(const TunerSettings& to);

  TunerLimits limits_;
  TunerSettings settings_;
  TunerInput last_;
  bool begun_ = false;
  int64_t steps_ = 0;  // since last_
  int64_t calm_ = 0;   // intervals without a wait
  int too_few_ = 0;    // threads that were found too few
  int64_t known_ = 0;  // intervals that this still holds for
  int64_t num_changes_ = 0;
};

}  // namespace chiliad::loader
