#pragma once

#include <csignal>
#include <thread>
#include <utility>

namespace chiliad::store::detail {

/// A thread with all signals blocked: they are for the thread that waits for them.
template <typename Body>
[[nodiscard]] std::thread quiet_thread(Body&& body) {
  sigset_t all{};
  sigset_t before{};
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::forward<Body>(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace chiliad::store::detail
