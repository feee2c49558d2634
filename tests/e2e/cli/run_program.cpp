#include "tests/e2e/cli/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chiliad/io/file.h"
#include "tests/support/temp_dir.h"

extern char** environ;

namespace chiliad::test {

ProgramResult run_chiliad(const std::vector<std::string>& arguments) {
  const TempDir folder;
  const std::string out = folder.path() / "out";
  const std::string err = folder.path() / "err";
  std::vector<std::string> owned{CHILIAD_BIN_DIR "/chiliad"};
  owned.insert(owned.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (auto& argument : owned) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, err.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ProgramResult result;
  if (error != 0) return result;
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  constexpr int64_t kMaxOutput = 16 << 20;
  result.out = io::read_text(out, kMaxOutput);
  result.err = io::read_text(err, kMaxOutput);
  return result;
}

}  // namespace chiliad::test
