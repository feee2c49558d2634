#include "chiliad/base/thread_pool.h"

#include <pthread.h>

#include <chrono>
#include <utility>

#include "chiliad/base/log.h"

namespace chiliad {

ThreadPool::ThreadPool(int num_threads, size_t queue_capacity, const std::string& name)
    : tasks_(queue_capacity) {
  CHILIAD_CHECK_GT(num_threads, 0);
  CHILIAD_CHECK_LE(name.size(), 12U);
  for (int i = 0; i < num_threads; ++i) {
    threads_.emplace_back([this, label = fmt::format("{}{}", name, i)] { run(label); });
  }
}

ThreadPool::~ThreadPool() {
  try {
    close();
  } catch (const std::exception& error) {
    log_error("thread pool: {}", error.what());
  }
}

void ThreadPool::submit(std::function<void()> task) {
  rethrow_first();
  CHILIAD_CHECK(tasks_.push(std::move(task)), "submit after close");
}

void ThreadPool::close() {
  tasks_.close();
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
  rethrow_first();
}

void ThreadPool::run(const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  for (;;) {
    auto task = tasks_.pop(std::chrono::hours(24));
    if (!task.has_value()) {
      if (tasks_.closed()) return;
      continue;
    }
    try {
      (*task)();
    } catch (...) {
      std::lock_guard lock(mutex_);
      if (first_error_ == nullptr) first_error_ = std::current_exception();
    }
  }
}

void ThreadPool::rethrow_first() {
  std::exception_ptr error;
  {
    std::lock_guard lock(mutex_);
    error = std::exchange(first_error_, nullptr);
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace chiliad
