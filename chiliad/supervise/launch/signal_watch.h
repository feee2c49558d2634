#pragma once

#include <csignal>

#include "chiliad/base/unique_fd.h"

namespace chiliad::supervise {

/// SIGINT and SIGTERM as a descriptor for poll, for its scope. Make it before any thread starts: it blocks
/// them for the calling thread and those that it starts.
class SignalWatch {
 public:
  SignalWatch();
  ~SignalWatch();
  SignalWatch(const SignalWatch&) = delete;
  SignalWatch& operator=(const SignalWatch&) = delete;

  [[nodiscard]] int fd() const { return fd_.get(); }
  /// How many came since the last call.
  [[nodiscard]] int take();

 private:
  sigset_t before_{};
  UniqueFd fd_;
};

}  // namespace chiliad::supervise
