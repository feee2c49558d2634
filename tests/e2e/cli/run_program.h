#pragma once

#include <string>
#include <vector>

#include "tests/support/program.h"

namespace chiliad::test {

/// Runs the built `chiliad` with `arguments` and waits for its end.
ProgramResult run_chiliad(const std::vector<std::string>& arguments);

}  // namespace chiliad::test
