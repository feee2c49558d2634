#pragma once

#include <chrono>

namespace chiliad {

using Nanoseconds = std::chrono::nanoseconds;
using Milliseconds = std::chrono::milliseconds;

/// Source of time for deadlines and metrics; passed in, so that tests use a fake one.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Monotonic time since an arbitrary start.
  [[nodiscard]] virtual Nanoseconds now() const = 0;
  /// Wall-clock time since 1970-01-01 UTC; may jump.
  [[nodiscard]] virtual Nanoseconds wall() const = 0;
};

/// The machine's clocks. Thread-safe.
class SystemClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const override {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  }
  [[nodiscard]] Nanoseconds wall() const override {
    return std::chrono::duration_cast<Nanoseconds>(std::chrono::system_clock::now().time_since_epoch());
  }
};

[[nodiscard]] inline double to_seconds(Nanoseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace chiliad
