#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <future>

#include "chiliad/base/clock.h"
#include "chiliad/dataset/build_index.h"

namespace chiliad::python {

/// Gives up the GIL for a scope. A thread that comes back when the interpreter is at its end stays here for
/// good, as in Python 3.14: older ones would unwind it, which C++ cannot stand.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// How long Ctrl-C may go unseen.
inline constexpr Nanoseconds kSignalInterval = std::chrono::milliseconds(50);

/// Lets Python handle signals. Throws what a handler raises (KeyboardInterrupt). Holds the GIL.
inline void handle_signals() {
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

/// Calls `wait(most)` without the GIL until it returns true; signals are handled meanwhile.
template <typename Wait>
void wait_interruptibly(Wait&& wait) {
  for (;;) {
    bool done = false;
    {
      const WithoutGil released;
      done = wait(kSignalInterval);
    }
    handle_signals();
    if (done) return;
  }
}

/// Runs `work(progress)` on a thread of its own, and `report(done, total)` on this one now and then. Where a
/// signal handler or `report` throws, the progress throws in the thread too, and that is waited for.
template <typename Work, typename Report>
auto run_interruptibly(Work&& work, Report&& report) {
  struct Cancelled : std::exception {};
  std::atomic<bool> cancelled{false};
  std::atomic<int64_t> done{0};
  std::atomic<int64_t> total{0};
  const dataset::Progress progress = [&](int64_t now, int64_t all) {
    done = now;
    total = all;
    if (cancelled) throw Cancelled();
  };
  auto result = std::async(std::launch::async, [&] { return work(progress); });
  try {
    bool ready = false;
    while (!ready) {
      {
        const WithoutGil released;
        ready = result.wait_for(kSignalInterval) == std::future_status::ready;
      }
      handle_signals();
      if (total > 0) report(done.load(), total.load());
    }
  } catch (...) {
    cancelled = true;
    const WithoutGil released;
    result.wait();
    throw;
  }
  return result.get();
}

}  // namespace chiliad::python
