#pragma once

#include <memory>
#include <vector>

#include "chiliad/parallel/sharded_layer.h"

namespace chiliad::train {

/// Puts the moving averages in the place of the parameters, and the parameters in theirs; called a second
/// time it undoes that, to the bit. All trained layers have one. Every rank calls it at the same place;
/// nothing reads the parameters meanwhile.
void swap_averages(std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards);

}  // namespace chiliad::train
