#pragma once

#include <sys/types.h>

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/temp_dir.h"

namespace chiliad::test {

/// `duration` times CHILIAD_TEST_TIME_SCALE, for deadlines on slow machines.
[[nodiscard]] std::chrono::milliseconds scaled(std::chrono::milliseconds duration);

/// Calls `done` every few milliseconds until it says true; false if the scaled deadline passes before.
template <typename Condition>
[[nodiscard]] bool poll_until(std::chrono::milliseconds deadline, Condition done);

/// How a program ended.
struct ProgramResult {
  int exit_code = -1;  ///< minus the signal where it was killed; -1000: it had to be killed at the deadline
  std::string out;
  std::string err;
};

/// A program started without a shell, with its output in files. The destructor kills and reaps it.
class Program {
 public:
  using Environment = std::map<std::string, std::string>;  ///< added to ours
  Program(std::vector<std::string> argv, const Environment& environment);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  void signal(int number) const;
  /// Waits; kills it after the scaled deadline.
  [[nodiscard]] ProgramResult wait(std::chrono::milliseconds deadline = std::chrono::minutes(2));
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  [[nodiscard]] bool reap(int options);

  TempDir folder_;
  pid_t pid_ = -1;
  std::optional<int> status_;
};

void pause_briefly();

template <typename Condition>
bool poll_until(std::chrono::milliseconds deadline, Condition done) {
  const auto end = std::chrono::steady_clock::now() + scaled(deadline);
  while (!done()) {
    if (std::chrono::steady_clock::now() > end) return false;
    pause_briefly();
  }
  return true;
}

}  // namespace chiliad::test
