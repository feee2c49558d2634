#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
#include <vector>

namespace chiliad::loader {

/// Threads that work through tasks in the order of their keys, as many at a time as they are told. All are
/// started at once, so that they inherit the binding of the thread that makes the crew. Thread-safe but for
/// close().
class ItemCrew {
 public:
  struct Task {
    double key = 0.0;                      ///< the smallest goes first, of equal ones the one added first
    std::function<void(int thread)> work;  ///< does not throw
  };

  /// name: at most 12 characters.
  ItemCrew(int num_threads, int num_active, const std::string& name);
  ~ItemCrew();
  ItemCrew(const ItemCrew&) = delete;
  ItemCrew& operator=(const ItemCrew&) = delete;

  /// After close() tasks are dropped.
  void add(std::vector<Task> tasks);
  /// num_active: from 1 to the number of threads; the others wait.
  void set_active(int num_active);
  [[nodiscard]] int num_active() const;
  /// Drops what nobody began, waits for what somebody did, joins.
  void close();

 private:
  struct Queued {
    Task task;
    uint64_t number = 0;
  };
  struct Later {
    bool operator()(const Queued& a, const Queued& b) const {
      return a.task.key != b.task.key ? a.task.key > b.task.key : a.number > b.number;
    }
  };
  void run(int thread, const std::string& name);

  mutable std::mutex mutex_;  // guards what follows up to threads_
  std::condition_variable changed_;
  std::priority_queue<Queued, std::vector<Queued>, Later> queue_;
  uint64_t num_added_ = 0;
  int num_active_;
  bool closed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace chiliad::loader
