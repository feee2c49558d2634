#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `run`.
struct RunOptions {
  std::string name;      ///< shown in logs; default: stem of the run file
  std::string dir;       ///< run directory; default: runs/<stem>
  uint64_t seed = 1;     ///< order, draws and initial weights
  int64_t steps = 1000;  ///< optimizer steps in all (free to change on resume)
};

}  // namespace chiliad::spec
