#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "chiliad/base/clock.h"

namespace chiliad::store {

/// So many a second, with bursts of up to `burst`; a rate of 0 has no limit. Times are passed in.
/// Thread-safe.
class TokenBucket {
 public:
  TokenBucket(double per_second, double burst) : per_second_(per_second), burst_(burst), tokens_(burst) {}

  /// Takes a token; returns how long to wait before using it. Tokens may be owed: who comes later waits
  /// longer.
  [[nodiscard]] Nanoseconds take(Nanoseconds now);
  /// Adds tokens, up to the burst.
  void give(double tokens);

 private:
  const double per_second_;
  const double burst_;
  std::mutex mutex_;  // guards the rest
  double tokens_;
  Nanoseconds last_{0};
  bool used_ = false;
};

/// How many requests may run at once: one more for every round of successes, half as many after a "slow
/// down", at most once for all requests that were running then. Thread-safe.
class ConcurrencyLimit {
 public:
  explicit ConcurrencyLimit(int64_t most) : most_(most), limit_(static_cast<double>(most)) {}

  /// A request that runs. `generation` tells which slow-down it knew of.
  struct Ticket {
    int64_t generation = 0;
  };
  /// Waits for room, at most so long; returns whether there was.
  [[nodiscard]] bool enter(Nanoseconds most, Ticket& ticket);
  void leave(const Ticket& ticket, bool succeeded, bool slow_down);
  [[nodiscard]] double limit() const;

 private:
  const int64_t most_;
  mutable std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  double limit_;
  int64_t running_ = 0;
  int64_t generation_ = 0;
};

}  // namespace chiliad::store
