#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "chiliad/base/clock.h"

namespace chiliad::store {

/// Time to wait in, and one place to end all waiting from; tests pass time themselves. Thread-safe.
class Waiter {
 public:
  virtual ~Waiter() = default;
  [[nodiscard]] virtual Nanoseconds now() const { return SystemClock().now(); }
  /// Waits so long; returns false, at once, where everything is to stop.
  [[nodiscard]] virtual bool wait(Nanoseconds time);
  void stop();
  [[nodiscard]] bool stopped() const { return stopped_.load(); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> stopped_{false};  // set under mutex_
};

}  // namespace chiliad::store
