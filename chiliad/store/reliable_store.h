#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "chiliad/base/rng.h"
#include "chiliad/store/request_limits.h"
#include "chiliad/store/store.h"
#include "chiliad/store/waiter.h"

namespace chiliad::store {

struct RetryOptions {
  Nanoseconds deadline = std::chrono::seconds(300);        ///< of one call with all its attempts
  Nanoseconds attempt_timeout = std::chrono::seconds(60);  ///< of one attempt
  Nanoseconds first_pause = std::chrono::milliseconds(50);
  Nanoseconds longest_pause = std::chrono::seconds(10);
  double requests_per_second = 0.0;  ///< 0: no limit
  int64_t connections = 16;          ///< requests at once, at most
  double retry_burst = 32.0;         ///< retries that may come at once; then `retries_per_second`
  double retries_per_second = 2.0;
};

/// Counters since the start; a snapshot.
struct RequestStats {
  int64_t requests = 0;
  int64_t failed = 0;     ///< attempts that were tried again or given up
  int64_t slow_down = 0;  ///< of them those where the store asked for it
  int64_t bytes = 0;      ///< that arrived
};

/// A store that waits for its trouble to pass: attempts with pauses that grow, with jitter, within a deadline
/// and a budget of retries that all threads share, so that a store that is down sees few requests; the rate
/// and the number of requests at once are limited, and halved where the store asks to slow down. Throws
/// Unavailable after the deadline, with the last failure in the message; InvalidInput at once.
class ReliableStore final : public Store {
 public:
  /// `waiter` outlives it; stopping it ends all calls with Unavailable.
  ReliableStore(std::unique_ptr<Store> store, const RetryOptions& options, Waiter& waiter);

  [[nodiscard]] const std::string& url() const override { return store_->url(); }
  /// `timeout` bounds an attempt, beside RetryOptions::attempt_timeout.
  [[nodiscard]] ObjectInfo stat(const std::string& object, Nanoseconds timeout) override;
  [[nodiscard]] int64_t read(const std::string& object, int64_t offset, std::span<std::byte> out,
                             Nanoseconds timeout) override;
  [[nodiscard]] ListPage list(const std::string& next, Nanoseconds timeout) override;

  /// Waits before another attempt at something that arrived wrong. Throws Unavailable past `until`.
  void pause(const std::string& object, int attempt, Nanoseconds until, const std::string& why);
  [[nodiscard]] Nanoseconds deadline_from_now() const { return waiter_.now() + options_.deadline; }
  [[nodiscard]] RequestStats stats() const;
  [[nodiscard]] double concurrency() const { return at_once_.limit(); }

 private:
  template <typename Call>
  auto attempt(const std::string& object, const Call& call);
  void enter(const std::string& object, Nanoseconds until, ConcurrencyLimit::Ticket& ticket);
  [[nodiscard]] std::string place_of(const std::string& object) const;
  void wait_or_stop(const std::string& object, Nanoseconds time);
  [[nodiscard]] Nanoseconds pause_of(int attempt);

  std::unique_ptr<Store> store_;
  const RetryOptions options_;
  Waiter& waiter_;
  TokenBucket rate_;
  TokenBucket retries_;
  ConcurrencyLimit at_once_;
  std::mutex rng_mutex_;  // guards rng_
  Rng rng_;               // of pauses; decides nothing else
  std::atomic<int64_t> requests_{0};
  std::atomic<int64_t> failed_{0};
  std::atomic<int64_t> slow_down_{0};
  std::atomic<int64_t> bytes_{0};
};

}  // namespace chiliad::store
