#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/loader/item_watch.h"

namespace chiliad::loader {

/// Tells of items that take longer than a deadline, each once: a storage that hangs, or a picture that a
/// decoder does not finish. It stops nobody.
class SlowItems {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// Everything given outlives it; `watches` keeps its size. tell: empty for a warning in the log.
  SlowItems(const std::deque<ItemWatch>& watches, const index::Index& index, Nanoseconds deadline, Tell tell);
  ~SlowItems();
  SlowItems(const SlowItems&) = delete;
  SlowItems& operator=(const SlowItems&) = delete;

  [[nodiscard]] int64_t count() const;
  void close();

 private:
  void run();
  void look();
  void tell_of(const ItemWatch::Snapshot& item, Nanoseconds now);

  const std::deque<ItemWatch>& watches_;
  const index::Index& index_;
  const Nanoseconds deadline_;
  const Tell tell_;
  const SystemClock clock_;
  std::vector<int64_t> told_;  // number of the item last told of, by thread
  mutable std::mutex mutex_;   // guards the rest
  std::condition_variable changed_;
  int64_t count_ = 0;
  bool closed_ = false;
  std::thread thread_;
};

}  // namespace chiliad::loader
