#include "chiliad/store/future_use.h"

#include <algorithm>

namespace chiliad::store {

void FutureUse::append(int64_t step, const std::vector<Digest>& keys) {
  std::lock_guard lock(mutex_);
  for (const Digest& key : keys) {
    std::deque<Run>& runs = runs_[key];
    if (!runs.empty() && step - runs.back().last <= kClose) {
      runs.back().last = step;
    } else {
      runs.push_back({step, step});
      endings_.emplace_back(step, key);
    }
  }
}

void FutureUse::reached(int64_t step) {
  std::lock_guard lock(mutex_);
  now_ = std::max(now_, step);
  while (!endings_.empty() && endings_.front().first < now_) {
    const auto found = runs_.find(endings_.front().second);
    endings_.pop_front();
    if (found == runs_.end()) continue;
    std::deque<Run>& runs = found->second;
    if (runs.front().last >= now_) {
      endings_.emplace_back(runs.front().last, found->first);  // it is still in use
      continue;
    }
    runs.pop_front();
    if (runs.empty()) runs_.erase(found);
  }
}

int64_t FutureUse::next_use(const Digest& key) const {
  std::lock_guard lock(mutex_);
  const auto found = runs_.find(key);
  if (found == runs_.end()) return kNever;
  for (const Run& run : found->second) {
    if (run.last >= now_) return std::max(run.first, now_);
  }
  return kNever;
}

int64_t FutureUse::now() const {
  std::lock_guard lock(mutex_);
  return now_;
}

void FutureUse::clear() {
  std::lock_guard lock(mutex_);
  runs_.clear();
  endings_.clear();
  now_ = 0;
}

}  // namespace chiliad::store
