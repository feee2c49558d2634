#pragma once

#include <cstdint>

#include "chiliad/parallel/sharded_layer.h"

namespace chiliad::train {

/// Gives this rank's shard of every parameter of a layer its initial values, a function of seed and name
/// alone, and the moving average the same. `zero` is what parameters that start at zero are given.
void set_initial_weights(parallel::ShardedLayer& shard, uint64_t seed, spec::Init zero = spec::Init::kZero);

}  // namespace chiliad::train
