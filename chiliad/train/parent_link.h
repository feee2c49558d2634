#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "chiliad/base/clock.h"
#include "chiliad/ipc/channel.h"

namespace chiliad::train {

/// The worker's end of the channel to its parent: sends frames, and follows what the parent says on a thread
/// of its own. When the parent is gone the process leaves at once: nobody would persist what it computes.
class ParentLink {
 public:
  explicit ParentLink(ipc::Channel channel);
  ~ParentLink();
  ParentLink(const ParentLink&) = delete;
  ParentLink& operator=(const ParentLink&) = delete;

  void send(ipc::FrameType type, const std::string& body, int fd = -1) { channel_.send(type, body, fd); }
  /// Called from the listening thread for each slot that the parent gives back: (slot, step, committed). Once
  /// this has returned, the callback set before is no longer running and is not called again.
  void on_slot_free(std::function<void(int, int64_t, bool)> callback);
  [[nodiscard]] bool stop_requested() const { return stop_.load(); }
  /// Sends amendments and waits until they are on disk. Throws PeerLost after the deadline.
  void make_durable(const std::string& amendments, Nanoseconds deadline);
  /// No more frames are expected and the parent may go. Once this has returned, no callback runs: what they
  /// use may be destroyed.
  void finish();

 private:
  void listen();
  void handle(const ipc::Frame& frame);

  ipc::Channel channel_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> finishing_{false};
  std::mutex mutex_;  // guards slot_free_, journal_acks_
  std::condition_variable changed_;
  std::function<void(int, int64_t, bool)> slot_free_;
  int64_t journal_acks_ = 0;
  std::thread listener_;
};

}  // namespace chiliad::train
