#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/thread_pool.h"
#include "chiliad/checkpoint/snapshot.h"

namespace chiliad::train {

/// Copies a rank's owned boxes into the snapshot ring behind the next forward and backward. The values must
/// not change until `wait_copied` has returned; the stage calls it before the optimizer.
class Snapshotter {
 public:
  /// Called, from the copying thread, when a slot holds a complete snapshot: (slot, step).
  using OnComplete = std::function<void(int, int64_t)>;

  Snapshotter(checkpoint::SnapshotRing ring, int rank, OnComplete on_complete);
  ~Snapshotter();

  /// Starts a copy. Waits up to `deadline` for a free slot; returns false if there is none (persisting is too
  /// slow).
  [[nodiscard]] bool start(int64_t step, std::string state, std::vector<checkpoint::OwnedBox> boxes,
                           Nanoseconds deadline);
  /// Until the running copy is done. Throws what it failed with.
  void wait_copied();
  /// The parent is done with a slot.
  void release(int slot);
  [[nodiscard]] int ring_fd() const { return ring_.fd(); }

 private:
  [[nodiscard]] int take_slot(Nanoseconds deadline);

  checkpoint::SnapshotRing ring_;
  int rank_;
  OnComplete on_complete_;
  std::mutex mutex_;  // guards busy_, copying_, error_
  std::condition_variable changed_;
  std::vector<bool> busy_;
  bool copying_ = false;
  std::exception_ptr error_;
  ThreadPool pool_;
};

}  // namespace chiliad::train
