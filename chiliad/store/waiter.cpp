#include "chiliad/store/waiter.h"

namespace chiliad::store {

bool Waiter::wait(Nanoseconds time) {
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, time, [&] { return stopped_.load(); });
}

void Waiter::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

}  // namespace chiliad::store
