#pragma once

#include <algorithm>
#include <ctime>

#include "chiliad/base/clock.h"

namespace chiliad::ipc::detail {

/// A span of time that runs from its construction; safe for spans as large as Nanoseconds::max().
class Deadline {
 public:
  explicit Deadline(Nanoseconds span) : start_(SystemClock().now()), span_(span) {}

  [[nodiscard]] Nanoseconds left() const {
    return std::max(Nanoseconds(0), span_ - std::max(Nanoseconds(0), SystemClock().now() - start_));
  }
  /// What is left, for ppoll().
  [[nodiscard]] timespec left_timespec() const {
    const Nanoseconds rest = left();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(rest);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((rest - seconds).count())};
  }

 private:
  Nanoseconds start_;
  Nanoseconds span_;
};

}  // namespace chiliad::ipc::detail
