#include "chiliad/loader/item_crew.h"

#include <pthread.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::loader {

ItemCrew::ItemCrew(int num_threads, int num_active, const std::string& name) : num_active_(num_active) {
  CHILIAD_CHECK(0 < num_active && num_active <= num_threads, "{} of {} threads", num_active, num_threads);
  for (int thread = 0; thread < num_threads; ++thread)
    threads_.emplace_back([this, thread, label = fmt::format("{}{}", name, thread)] { run(thread, label); });
}

ItemCrew::~ItemCrew() {
  close();
}

void ItemCrew::add(std::vector<Task> tasks) {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  for (Task& task : tasks) queue_.push({std::move(task), num_added_++});
  changed_.notify_all();
}

void ItemCrew::set_active(int num_active) {
  CHILIAD_CHECK(0 < num_active && num_active <= static_cast<int>(threads_.size()), "{} of {} threads",
                num_active, threads_.size());
  std::lock_guard lock(mutex_);
  num_active_ = num_active;
  changed_.notify_all();
}

int ItemCrew::num_active() const {
  std::lock_guard lock(mutex_);
  return num_active_;
}

void ItemCrew::close() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    queue_ = {};
    changed_.notify_all();
  }
  for (auto& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void ItemCrew::run(int thread, const std::string& name) {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return closed_ || (thread < num_active_ && !queue_.empty()); });
    if (closed_) return;
    auto work = queue_.top().task.work;
    queue_.pop();
    lock.unlock();
    work(thread);
    work = {};
    lock.lock();
  }
}

}  // namespace chiliad::loader
