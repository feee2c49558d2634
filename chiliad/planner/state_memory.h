#pragma once

#include <cstdint>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::planner {

/// Bytes of one rank for what lives as long as the run; activations come on top.
struct StateMemory {
  int64_t weights = 0;    ///< this rank's shard; all of them where dp_shard is 1
  int64_t gradients = 0;  ///< of the shard, and the owned sum
  int64_t moments = 0;    ///< of the owned part
  int64_t average = 0;    ///< of the owned part
  int64_t buffers = 0;    ///< whole layers at work, and parts of reductions under way
  int64_t snapshots = 0;  ///< slots of the ring, each with the owned part of all that is saved

  /// What training itself holds, without the snapshots (parallel::StateBytes counts the same).
  [[nodiscard]] int64_t training() const { return weights + gradients + moments + average + buffers; }
  [[nodiscard]] int64_t total() const { return training() + snapshots; }
};

/// Of the run's layout, fp32, for parts of equal size (parallel/sharded_layer.h): with s ranks of dp_shard, r
/// replicas and t of tp, a rank has 1/t of the cut parameters, shards are 1/s of that, and owned parts 1/r of
/// a shard.
[[nodiscard]] StateMemory state_memory(const spec::LayerTable& table, const spec::RunFile& file);

}  // namespace chiliad::planner
