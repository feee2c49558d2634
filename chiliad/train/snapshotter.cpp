#include "chiliad/train/snapshotter.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace chiliad::train {

Snapshotter::Snapshotter(checkpoint::SnapshotRing ring, int rank, OnComplete on_complete)
    : ring_(std::move(ring)),
      rank_(rank),
      on_complete_(std::move(on_complete)),
      busy_(static_cast<size_t>(ring_.num_slots()), false),
      pool_(1, 1, "snapshot") {}

Snapshotter::~Snapshotter() = default;

int Snapshotter::take_slot(Nanoseconds deadline) {
  std::unique_lock lock(mutex_);
  auto free = busy_.end();
  const bool found = changed_.wait_for(lock, deadline, [&] {
    free = std::find(busy_.begin(), busy_.end(), false);
    return free != busy_.end();
  });
  if (!found) return -1;
  *free = true;
  copying_ = true;
  return static_cast<int>(free - busy_.begin());
}

bool Snapshotter::start(int64_t step, std::string state, std::vector<checkpoint::OwnedBox> boxes,
                        Nanoseconds deadline) {
  wait_copied();
  const int slot = take_slot(deadline);
  if (slot < 0) return false;
  auto task = [this, slot, step, text = std::move(state), list = std::move(boxes)] {
    std::exception_ptr error;
    try {
      ring_.write(slot, step, rank_, text, list);
      on_complete_(slot, step);
    } catch (...) {
      error = std::current_exception();
    }
    std::lock_guard lock(mutex_);
    copying_ = false;
    error_ = error;
    changed_.notify_all();
  };
  pool_.submit(std::move(task));
  return true;
}

void Snapshotter::wait_copied() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return !copying_; });
  if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Snapshotter::release(int slot) {
  std::lock_guard lock(mutex_);
  if (slot < 0 || static_cast<size_t>(slot) >= busy_.size()) return;
  busy_[static_cast<size_t>(slot)] = false;
  changed_.notify_all();
}

}  // namespace chiliad::train
