#include "tests/e2e/cli/run_program.h"

namespace chiliad::test {

ProgramResult run_chiliad(const std::vector<std::string>& arguments) {
  std::vector<std::string> argv{CHILIAD_BIN_DIR "/chiliad"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return Program(std::move(argv), {}).wait();
}

}  // namespace chiliad::test
