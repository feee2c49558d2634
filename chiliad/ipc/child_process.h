#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/base/unique_fd.h"

namespace chiliad::ipc {

struct ExitStatus {
  int code = 0;    ///< where it exited by itself
  int signal = 0;  ///< else the signal
  /// "exit code 3" or "signal 9 (Killed)".
  [[nodiscard]] std::string to_string() const;
};

struct SpawnOptions {
  std::vector<std::string> argv;                                 ///< argv[0] is the program's path
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to ours
  /// SIGINT is ignored from the first moment: a terminal sends Ctrl-C to the whole group, and the parent
  /// decides.
  bool ignore_interrupt = false;
  std::vector<int> inherit;  ///< descriptors kept open under the same number
};

/// A child that gets SIGKILL when its parent dies (PR_SET_PDEATHSIG). Started by posix_spawn/vfork, never by
/// a plain fork of a threaded process. The destructor kills and reaps it. The kernel ties that signal to the
/// *thread* that spawned: spawn from one that lives as long as the child.
class ChildProcess {
 public:
  /// Descriptors 0, 1, 2 and `inherit` stay open, all others are closed; signals are at their defaults, none
  /// blocked. Throws InvalidInput if the program cannot be executed, Unavailable where processes or memory
  /// are short.
  [[nodiscard]] static ChildProcess spawn(const SpawnOptions& options);
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Nothing while it runs, after waiting for at most `deadline`.
  [[nodiscard]] std::optional<ExitStatus> wait(Nanoseconds deadline);
  /// Does nothing once the child was reaped.
  void signal(int number);
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// Readable when the child has ended; for poll().
  [[nodiscard]] int pidfd() const { return pidfd_.get(); }

 private:
  ChildProcess() = default;
  void kill_and_reap() noexcept;
  pid_t pid_ = -1;
  UniqueFd pidfd_;
  std::optional<ExitStatus> status_;
};

/// For a worker's main: leave if the parent is already gone (closes the race of PR_SET_PDEATHSIG).
void die_with_parent(pid_t expected_parent);

}  // namespace chiliad::ipc
