#include "chiliad/store/request_limits.h"

#include <algorithm>

namespace chiliad::store {

Nanoseconds TokenBucket::take(Nanoseconds now) {
  if (per_second_ <= 0.0) return Nanoseconds(0);
  std::lock_guard lock(mutex_);
  if (used_) tokens_ = std::min(burst_, tokens_ + per_second_ * to_seconds(now - last_));
  used_ = true;
  last_ = now;
  tokens_ -= 1.0;
  if (tokens_ >= 0.0) return Nanoseconds(0);
  return Nanoseconds(static_cast<int64_t>(-tokens_ / per_second_ * 1e9));
}

void TokenBucket::give(double tokens) {
  std::lock_guard lock(mutex_);
  tokens_ = std::min(burst_, tokens_ + tokens);
}

bool ConcurrencyLimit::enter(Nanoseconds most, Ticket& ticket) {
  std::unique_lock lock(mutex_);
  const auto has_room = [&] { return running_ < std::max<int64_t>(1, static_cast<int64_t>(limit_)); };
  if (!changed_.wait_for(lock, most, has_room)) return false;
  ++running_;
  ticket.generation = generation_;
  return true;
}

void ConcurrencyLimit::leave(const Ticket& ticket, bool succeeded, bool slow_down) {
  std::lock_guard lock(mutex_);
  --running_;
  if (slow_down && ticket.generation == generation_) {
    limit_ = std::max(1.0, limit_ / 2.0);
    ++generation_;
  } else if (succeeded) {
    limit_ = std::min(static_cast<double>(most_), limit_ + 1.0 / limit_);
  }
  changed_.notify_all();
}

double ConcurrencyLimit::limit() const {
  std::lock_guard lock(mutex_);
  return limit_;
}

}  // namespace chiliad::store
