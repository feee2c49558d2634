#include "chiliad/ipc/child_process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/ipc/detail/deadline.h"

extern char** environ;

namespace chiliad::ipc {
namespace {

/// All that the child needs, made before vfork: it must not allocate.
struct Prepared {
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const std::vector<int>* inherit = nullptr;
  pid_t parent = -1;
  bool ignore_interrupt = false;
  int error_pipe = -1;
};

std::vector<std::string> merged_environment(const SpawnOptions& options) {
  std::vector<std::string> merged;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = false;
    for (const auto& [key, value] : options.environment) replaced = replaced || key == name;
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [key, value] : options.environment) merged.push_back(key + "=" + value);
  return merged;
}

Prepared prepare(const SpawnOptions& options) {
  Prepared prepared;
  prepared.environment = merged_environment(options);
  for (const auto& argument : options.argv) prepared.argv.push_back(const_cast<char*>(argument.c_str()));
  prepared.argv.push_back(nullptr);
  for (auto& entry : prepared.environment) prepared.envp.push_back(entry.data());
  prepared.envp.push_back(nullptr);
  prepared.inherit = &options.inherit;
  prepared.ignore_interrupt = options.ignore_interrupt;
  prepared.parent = ::getpid();
  return prepared;
}

[[noreturn]] void give_up(int error_pipe) {
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(error_pipe, &error, sizeof(error));
  ::_exit(127);
}

void reset_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int number = 1; number < NSIG; ++number) ::sigaction(number, &standard, nullptr);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

void close_others_at_exec() {
  constexpr unsigned int kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, 3U, ~0U, kCloseOnExec) == 0) return;
  constexpr int kMostDescriptors = 65536;
  for (int fd = 3; fd < kMostDescriptors; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/// In the child, sharing the parent's memory: system calls only.
[[noreturn]] void run_child(const Prepared& prepared) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(prepared.error_pipe);
  if (::getppid() != prepared.parent) ::_exit(127);
  reset_signals();
  if (prepared.ignore_interrupt) std::signal(SIGINT, SIG_IGN);
  close_others_at_exec();
  for (const int fd : *prepared.inherit) {
    if (::fcntl(fd, F_SETFD, 0) != 0) give_up(prepared.error_pipe);
  }
  ::execve(prepared.argv[0], prepared.argv.data(), prepared.envp.data());
  give_up(prepared.error_pipe);
}

/// Signals are blocked over the vfork, so that no handler of the parent runs in the child.
[[gnu::noinline]] pid_t start_child(const Prepared& prepared) {
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) run_child(prepared);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

/// The errno that the child left in the pipe, or 0 where exec closed it.
int error_of_child(int read_end) {
  int error = 0;
  ssize_t got = 0;
  do {
    got = ::read(read_end, &error, sizeof(error));
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof(error)) ? error : 0;
}

ExitStatus status_of(int raw) {
  if (WIFSIGNALED(raw)) return {0, WTERMSIG(raw)};
  return {WEXITSTATUS(raw), 0};
}

}  // namespace

std::string ExitStatus::to_string() const {
  if (signal == 0) return fmt::format("exit code {}", code);
  const char* name = ::sigdescr_np(signal);
  return fmt::format("signal {} ({})", signal, name == nullptr ? "unknown" : name);
}

ChildProcess ChildProcess::spawn(const SpawnOptions& options) {
  CHILIAD_CHECK(!options.argv.empty(), "no program to spawn");
  const std::string& program = options.argv[0];
  Prepared prepared = prepare(options);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw Unavailable(program, fmt::format("pipe failed: {}", std::strerror(errno)));
  }
  const UniqueFd read_end(ends[0]);
  UniqueFd write_end(ends[1]);
  prepared.error_pipe = write_end.get();

  ChildProcess child;
  child.pid_ = start_child(prepared);
  if (child.pid_ < 0) throw Unavailable(program, fmt::format("vfork failed: {}", std::strerror(errno)));
  write_end.reset();
  if (const int error = error_of_child(read_end.get()); error != 0) {
    throw InvalidInput(program, fmt::format("cannot be executed: {}", std::strerror(error)));
  }
  child.pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, child.pid_, 0)));
  if (!child.pidfd_.valid()) {
    throw Unavailable(
        program, fmt::format("pidfd_open failed: {}. Linux 5.3 or newer is needed", std::strerror(errno)));
  }
  return child;
}

ChildProcess::~ChildProcess() {
  kill_and_reap();
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      pidfd_(std::move(other.pidfd_)),
      status_(std::exchange(other.status_, {})) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  kill_and_reap();
  pid_ = std::exchange(other.pid_, -1);
  pidfd_ = std::move(other.pidfd_);
  status_ = std::exchange(other.status_, {});
  return *this;
}

void ChildProcess::kill_and_reap() noexcept {
  if (pid_ <= 0 || status_.has_value()) return;
  ::kill(pid_, SIGKILL);
  int raw = 0;
  while (::waitpid(pid_, &raw, 0) < 0 && errno == EINTR) {
  }
  status_ = status_of(raw);
}

std::optional<ExitStatus> ChildProcess::wait(Nanoseconds deadline) {
  if (status_.has_value()) return status_;
  CHILIAD_CHECK_GT(pid_, 0);
  const detail::Deadline until(deadline);
  while (true) {
    pollfd entry{pidfd_.get(), POLLIN, 0};
    const timespec rest = until.left_timespec();
    const int ready = ::ppoll(&entry, 1, &rest, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) throw Unavailable("child process", fmt::format("poll failed: {}", std::strerror(errno)));
    int raw = 0;
    const pid_t reaped = ::waitpid(pid_, &raw, WNOHANG);
    if (reaped < 0)
      throw InternalError("child process", fmt::format("waitpid failed: {}", std::strerror(errno)));
    if (reaped == pid_) {
      status_ = status_of(raw);
      return status_;
    }
    if (ready == 0) return std::nullopt;
  }
}

void ChildProcess::signal(int number) {
  if (status_.has_value() || pid_ <= 0) return;
  if (::kill(pid_, number) != 0 && errno != ESRCH) {
    throw Unavailable("child process", fmt::format("kill failed: {}", std::strerror(errno)));
  }
}

void die_with_parent(pid_t expected_parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != expected_parent) ::raise(SIGKILL);
}

}  // namespace chiliad::ipc
