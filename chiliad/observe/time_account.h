#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "chiliad/base/clock.h"

namespace chiliad::observe {

/// Rows of the account of a step. The parts add up to the wall time; `other` is the remainder.
enum class Row : int {
  kDataWait,
  kHostToDevice,
  kForward,
  kBackward,
  kCommunication,
  kOptimizer,
  kCheckpoint,
  kEvaluation
};
inline constexpr int kNumRows = 8;

[[nodiscard]] const char* row_name(Row row);

/// Where the time of one step went, on the thread that runs the step. Not thread-safe.
class TimeAccount {
 public:
  explicit TimeAccount(const Clock& clock);

  /// Charges the time of its scope to a row; an inner scope's time is not charged to the outer one.
  class Scope {
   public:
    Scope(TimeAccount& account, Row row);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    TimeAccount& account_;
    int outer_;
  };

  struct Report {
    double wall = 0.0;
    std::array<double, kNumRows> seconds{};
    double other = 0.0;
  };
  /// Closes the step and starts the next.
  [[nodiscard]] Report close_step();

 private:
  void charge();

  const Clock& clock_;  // outlives the account
  Nanoseconds step_start_;
  Nanoseconds last_;
  int active_ = -1;
  std::array<double, kNumRows> seconds_{};
};

}  // namespace chiliad::observe
