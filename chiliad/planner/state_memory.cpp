#include "chiliad/planner/state_memory.h"

namespace chiliad::planner {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kSnapshotSlots = 2;

}  // namespace

StateMemory state_memory(int64_t num_params, int64_t num_ranks, bool has_average) {
  const int64_t whole = kFloat * num_params;
  const int64_t owned = kFloat * ((num_params + num_ranks - 1) / num_ranks);
  StateMemory memory;
  memory.weights = whole;
  memory.gradients = 2 * whole + owned;
  memory.moments = 2 * owned;
  memory.average = has_average ? owned : 0;
  memory.snapshots = kSnapshotSlots * (owned + memory.moments + memory.average);
  return memory;
}

}  // namespace chiliad::planner
