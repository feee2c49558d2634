#pragma once

#include <string>
#include <vector>

namespace chiliad::test {

struct ProgramResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs the built `chiliad` with `arguments`, without a shell, and waits for its end.
ProgramResult run_chiliad(const std::vector<std::string>& arguments);

}  // namespace chiliad::test
