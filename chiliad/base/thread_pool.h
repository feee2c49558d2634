#pragma once

#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "chiliad/base/bounded_queue.h"

namespace chiliad {

/// Fixed number of threads over one bounded queue of tasks. The first exception of a task is kept and thrown
/// by the next submit() or close(). Thread-safe but for close().
class ThreadPool {
 public:
  /// `name` (at most 12 characters) shows in debuggers and /proc.
  ThreadPool(int num_threads, size_t queue_capacity, const std::string& name);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Waits for room in the queue. Throws the first failure of an earlier task, and InternalError after
  /// close().
  void submit(std::function<void()> task);
  /// Refuses new tasks, drains, joins, throws the first failure.
  void close();

 private:
  void run(const std::string& name);
  void rethrow_first();

  BoundedQueue<std::function<void()>> tasks_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // guards first_error_
  std::exception_ptr first_error_;
};

}  // namespace chiliad
