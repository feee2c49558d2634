#pragma once

#include <cstdint>

namespace chiliad::planner {

/// Bytes of one rank for what lives as long as the run; activations come on top.
struct StateMemory {
  int64_t weights = 0;    ///< whole, on every rank
  int64_t gradients = 0;  ///< whole, the parts received from the others, and their sum
  int64_t moments = 0;    ///< of the owned part
  int64_t average = 0;    ///< of the owned part
  int64_t snapshots = 0;  ///< slots of the ring, each with the owned part of all that is saved

  [[nodiscard]] int64_t total() const { return weights + gradients + moments + average + snapshots; }
};

/// For replicated data parallelism with a sharded optimizer, fp32, parts of equal size
/// (parallel/sharded_layer.h).
[[nodiscard]] StateMemory state_memory(int64_t num_params, int64_t num_ranks, bool has_average);

}  // namespace chiliad::planner
