#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `checkpoint`.
struct CheckpointOptions {
  int64_t every = 500;       ///< steps between snapshots; 0: only at the end and on a signal
  int64_t keep = 2;          ///< committed steps kept, at least 1
  double timeout_s = 120.0;  ///< deadline from snapshot to commit
};

}  // namespace chiliad::spec
