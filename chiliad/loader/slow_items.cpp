#include "chiliad/loader/slow_items.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "chiliad/base/log.h"
#include "chiliad/loader/item_loader.h"

namespace chiliad::loader {
namespace {

constexpr Nanoseconds kLooksAtLeastEvery = std::chrono::seconds(1);
constexpr Nanoseconds kLooksAtMostEvery = std::chrono::milliseconds(1);

}  // namespace

SlowItems::SlowItems(const std::deque<ItemWatch>& watches, const index::Index& index, Nanoseconds deadline,
                     Tell tell)
    : watches_(watches),
      index_(index),
      deadline_(deadline),
      tell_(std::move(tell)),
      told_(watches.size(), 0),
      thread_([this] { run(); }) {}

SlowItems::~SlowItems() {
  close();
}

int64_t SlowItems::count() const {
  std::lock_guard lock(mutex_);
  return count_;
}

void SlowItems::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  if (thread_.joinable()) thread_.join();
}

void SlowItems::run() {
  const Nanoseconds pause = std::clamp(deadline_ / 4, kLooksAtMostEvery, kLooksAtLeastEvery);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, pause, [&] { return closed_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

void SlowItems::look() {
  const Nanoseconds now = clock_.now();
  for (size_t thread = 0; thread < watches_.size(); ++thread) {
    const auto item = watches_[thread].snapshot();
    if (item.phase == ItemPhase::kIdle || now - item.begun <= deadline_ || item.number == told_[thread])
      continue;
    told_[thread] = item.number;
    tell_of(item, now);
  }
}

void SlowItems::tell_of(const ItemWatch::Snapshot& item, Nanoseconds now) {
  const std::string text = fmt::format(
      "loader: item {} ({}) has taken {:.3g} s so far, and is at {}; data.item_deadline_s is {:.3g}",
      index_.key(item.sample), part_place(index_, item.sample, -1), to_seconds(now - item.begun),
      phase_name(item.phase), to_seconds(deadline_));
  if (tell_) {
    tell_(text);
  } else {
    log_warn("{}", text);
  }
  std::lock_guard lock(mutex_);
  ++count_;
}

}  // namespace chiliad::loader
