#include "chiliad/ipc/child_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::ipc {
namespace {

constexpr Nanoseconds kPatient = std::chrono::seconds(20);

ChildProcess shell(const std::string& script, std::vector<int> inherit = {}) {
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.inherit = std::move(inherit);
  return ChildProcess::spawn(options);
}

std::pair<UniqueFd, UniqueFd> make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::string read_all(const UniqueFd& fd) {
  std::string text;
  std::array<char, 256> part{};
  while (true) {
    const ssize_t got = ::read(fd.get(), part.data(), part.size());
    if (got <= 0) return text;
    text.append(part.data(), static_cast<size_t>(got));
  }
}

/// What a shell script writes to the descriptor that $OUT names.
std::string output_of(const std::string& script,
                      std::vector<std::pair<std::string, std::string>> environment = {}) {
  auto [read_end, write_end] = make_pipe();
  SpawnOptions options;
  options.argv = {"/bin/sh", "-c", "exec >&" + std::to_string(write_end.get()) + "; " + script};
  options.environment = std::move(environment);
  options.inherit = {write_end.get()};
  ChildProcess child = ChildProcess::spawn(options);
  write_end.reset();
  return read_all(read_end);
}

TEST(ChildProcessTest, TellsTheExitCode) {
  ChildProcess child = shell("exit 3");
  const auto status = child.wait(kPatient);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->to_string(), "exit code 3");
}

TEST(ChildProcessTest, TellsTheSignal) {
  ChildProcess child = shell("kill -9 $$");
  const auto status = child.wait(kPatient);
  ASSERT_TRUE(status.has_value());
  EXPECT_EQ(status->to_string(), "signal 9 (Killed)");
}

TEST(ChildProcessTest, WaitEndsAtItsDeadline) {
  ChildProcess child = shell("exec /bin/sleep 1000");
  EXPECT_FALSE(child.wait(Nanoseconds(0)).has_value());
  child.signal(SIGTERM);
  EXPECT_EQ(child.wait(kPatient)->signal, SIGTERM);
}

TEST(ChildProcessTest, PidfdIsReadableAfterTheEnd) {
  ChildProcess child = shell("exit 0");
  pollfd entry{child.pidfd(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, 20'000), 1);
}

TEST(ChildProcessTest, DestructorKillsAndReaps) {
  pid_t pid = -1;
  {
    const ChildProcess child = shell("exec /bin/sleep 1000");
    pid = child.pid();
    ASSERT_EQ(::kill(pid, 0), 0);
  }
  EXPECT_EQ(::kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(ChildProcessTest, MissingProgramIsInvalidInput) {
  SpawnOptions options;
  options.argv = {"/nowhere/chiliad-worker"};
  try {
    (void)ChildProcess::spawn(options);
    FAIL() << "spawned";
  } catch (const InvalidInput& error) {
    EXPECT_STREQ(error.what(), "/nowhere/chiliad-worker: cannot be executed: No such file or directory");
  }
}

TEST(ChildProcessTest, KeepsOnlyTheListedDescriptors) {
  auto [unlisted_read, unlisted] = make_pipe();
  ASSERT_EQ(::fcntl(unlisted.get(), F_SETFD, 0), 0);
  const std::string script = "if [ -e /proc/self/fd/" + std::to_string(unlisted.get()) +
                             " ]; then echo leaked; else echo closed; fi";
  EXPECT_EQ(output_of(script), "closed\n");
}

TEST(ChildProcessTest, AddsToTheEnvironment) {
  ASSERT_EQ(::setenv("CHILIAD_TEST_KEPT", "kept", 1), 0);
  ASSERT_EQ(::setenv("CHILIAD_TEST_REPLACED", "old", 1), 0);
  EXPECT_EQ(output_of("echo $CHILIAD_TEST_KEPT $CHILIAD_TEST_REPLACED", {{"CHILIAD_TEST_REPLACED", "new"}}),
            "kept new\n");
}

TEST(ChildProcessTest, StartsWithNoBlockedSignal) {
  sigset_t blocked;
  sigset_t before;
  ::sigemptyset(&blocked);
  ::sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const std::string mask = output_of("grep SigBlk /proc/self/status");
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(mask, "SigBlk:\t0000000000000000\n");
}

/// Not a test of its own: the process that KilledWithItsParent starts and kills. It spawns a grandchild that
/// holds the inherited descriptor, and waits.
TEST(ChildProcessTest, DISABLED_ParentOfASleeper) {
  const char* fd_text = std::getenv("CHILIAD_TEST_FD");
  ASSERT_NE(fd_text, nullptr);
  const int fd = std::stoi(fd_text);
  SpawnOptions options;
  options.argv = {"/bin/sleep", "1000"};
  options.inherit = {fd};
  ChildProcess sleeper = ChildProcess::spawn(options);
  ASSERT_EQ(::write(fd, "r", 1), 1);
  (void)sleeper.wait(Nanoseconds::max());
}

TEST(ChildProcessTest, KilledWithItsParent) {
  auto [read_end, write_end] = make_pipe();
  SpawnOptions options;
  options.argv = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                  "--gtest_filter=ChildProcessTest.DISABLED_ParentOfASleeper"};
  options.environment = {{"CHILIAD_TEST_FD", std::to_string(write_end.get())}};
  options.inherit = {write_end.get()};
  ChildProcess parent = ChildProcess::spawn(options);
  write_end.reset();
  char ready = 0;
  ASSERT_EQ(::read(read_end.get(), &ready, 1), 1);
  parent.signal(SIGKILL);
  ASSERT_EQ(parent.wait(kPatient)->signal, SIGKILL);
  pollfd entry{read_end.get(), POLLIN, 0};
  ASSERT_EQ(::poll(&entry, 1, 20'000), 1) << "the sleeper still holds the pipe";
  EXPECT_EQ(::read(read_end.get(), &ready, 1), 0);
}

TEST(DieWithParentTest, KillsAnOrphan) {
  EXPECT_EXIT(die_with_parent(1'999'999'999), ::testing::KilledBySignal(SIGKILL), "");
}

}  // namespace
}  // namespace chiliad::ipc
