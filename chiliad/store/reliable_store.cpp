#include "chiliad/store/reliable_store.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>

namespace chiliad::store {

ReliableStore::ReliableStore(std::unique_ptr<Store> store, const RetryOptions& options, Waiter& waiter)
    : store_(std::move(store)),
      options_(options),
      waiter_(waiter),
      rate_(options.requests_per_second, std::max(1.0, options.requests_per_second / 4.0)),
      retries_(options.retries_per_second, options.retry_burst),
      at_once_(options.connections),
      rng_(static_cast<uint64_t>(SystemClock().now().count())) {}

std::string ReliableStore::place_of(const std::string& object) const {
  return object.empty() ? url() : url() + "/" + object;
}

void ReliableStore::wait_or_stop(const std::string& object, Nanoseconds time) {
  if (!waiter_.wait(time)) throw Unavailable(place_of(object), "stopped while it was read");
}

// Full jitter: anything up to the pause, so that many readers do not come back together.
Nanoseconds ReliableStore::pause_of(int attempt) {
  const double grown = to_seconds(options_.first_pause) * std::pow(2.0, std::min(attempt - 1, 30));
  const double pause = std::min(grown, to_seconds(options_.longest_pause));
  std::lock_guard lock(rng_mutex_);
  return Nanoseconds(static_cast<int64_t>(pause * (0.25 + 0.75 * rng_.uniform_double()) * 1e9));
}

void ReliableStore::pause(const std::string& object, int attempt, Nanoseconds until, const std::string& why) {
  const Nanoseconds now = waiter_.now();
  const Nanoseconds pause = std::max(pause_of(attempt), retries_.take(now));
  if (now + pause >= until) {
    throw Unavailable(
        place_of(object),
        fmt::format("gave up after {} attempts in {:.0f} s: {}. Check the store and the network; "
                    "the same command goes on from the last checkpoint",
                    attempt, to_seconds(options_.deadline), why));
  }
  wait_or_stop(object, pause);
}

void ReliableStore::enter(const std::string& object, Nanoseconds until, ConcurrencyLimit::Ticket& ticket) {
  constexpr Nanoseconds kLookUp = std::chrono::milliseconds(100);
  wait_or_stop(object, rate_.take(waiter_.now()));
  while (!at_once_.enter(kLookUp, ticket)) {
    if (waiter_.stopped()) throw Unavailable(place_of(object), "stopped while it was read");
    if (waiter_.now() >= until)
      throw Unavailable(place_of(object), "no request was free within the deadline. Raise store.connections");
  }
}

template <typename Call>
auto ReliableStore::attempt(const std::string& object, const Call& call) {
  const Nanoseconds until = deadline_from_now();
  for (int attempt = 1;; ++attempt) {
    ConcurrencyLimit::Ticket ticket;
    enter(object, until, ticket);
    ++requests_;
    std::string why;
    Nanoseconds after{0};
    try {
      auto result = call(std::min(options_.attempt_timeout, until - waiter_.now()));
      at_once_.leave(ticket, true, false);
      retries_.give(0.1);
      return result;
    } catch (const StoreBusy& busy) {
      ++slow_down_;
      at_once_.leave(ticket, false, true);
      why = busy.what();
      after = busy.retry_after();
    } catch (const Unavailable& error) {
      at_once_.leave(ticket, false, false);
      why = error.what();
    } catch (...) {
      at_once_.leave(ticket, false, false);
      throw;
    }
    ++failed_;
    if (after.count() > 0) wait_or_stop(object, std::min(after, options_.longest_pause));
    pause(object, attempt, until, why);
  }
}

ObjectInfo ReliableStore::stat(const std::string& object, Nanoseconds timeout) {
  return attempt(object, [&](Nanoseconds most) { return store_->stat(object, std::min(most, timeout)); });
}

int64_t ReliableStore::read(const std::string& object, int64_t offset, std::span<std::byte> out,
                            Nanoseconds timeout) {
  const int64_t got = attempt(
      object, [&](Nanoseconds most) { return store_->read(object, offset, out, std::min(most, timeout)); });
  bytes_ += got;
  return got;
}

ListPage ReliableStore::list(const std::string& next, Nanoseconds timeout) {
  return attempt("", [&](Nanoseconds most) { return store_->list(next, std::min(most, timeout)); });
}

RequestStats ReliableStore::stats() const {
  return {requests_.load(), failed_.load(), slow_down_.load(), bytes_.load()};
}

}  // namespace chiliad::store
