#include "tests/support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "chiliad/io/file.h"

extern char** environ;

namespace chiliad::test {
namespace {

constexpr int64_t kMaxOutput = 16 << 20;
constexpr int kKilledAtDeadline = -1000;

std::vector<std::string> merged(const Program::Environment& added) {
  std::vector<std::string> all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!added.contains(text.substr(0, text.find('=')))) all.push_back(text);
  }
  for (const auto& [key, value] : added) all.push_back(key + "=" + value);
  return all;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

}  // namespace

std::chrono::milliseconds scaled(std::chrono::milliseconds duration) {
  static const char* const text = std::getenv("CHILIAD_TEST_TIME_SCALE");
  const double scale = text == nullptr ? 1.0 : std::atof(text);
  return std::chrono::milliseconds(static_cast<int64_t>(static_cast<double>(duration.count()) * scale));
}

void pause_briefly() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

Program::Program(std::vector<std::string> argv, const Environment& environment) {
  const std::string out = folder_.path() / "out";
  const std::string err = folder_.path() / "err";
  auto variables = merged(environment);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  const auto arguments = pointers(argv);
  const int error =
      ::posix_spawnp(&pid_, argv[0].c_str(), &actions, nullptr, arguments.data(), pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error("cannot start " + argv[0]);
}

Program::~Program() {
  if (reap(WNOHANG)) return;
  signal(SIGKILL);
  static_cast<void>(reap(0));
}

bool Program::reap(int options) {
  if (status_.has_value()) return true;
  int status = 0;
  if (::waitpid(pid_, &status, options) != pid_) return false;
  status_ = status;
  return true;
}

void Program::signal(int number) const {
  if (!status_.has_value()) ::kill(pid_, number);
}

ProgramResult Program::wait(std::chrono::milliseconds deadline) {
  ProgramResult result;
  const bool ended = poll_until(deadline, [&] { return reap(WNOHANG); });
  if (!ended) {
    signal(SIGKILL);
    static_cast<void>(reap(0));
  }
  const int status = status_.value_or(0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  if (!ended) result.exit_code = kKilledAtDeadline;
  result.out = io::read_text(folder_.path() / "out", kMaxOutput);
  result.err = io::read_text(folder_.path() / "err", kMaxOutput);
  return result;
}

}  // namespace chiliad::test
