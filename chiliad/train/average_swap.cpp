#include "chiliad/train/average_swap.h"

#include <algorithm>

namespace chiliad::train {

void swap_averages(std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards) {
  for (auto& shard : shards) {
    if (!shard->trained()) continue;
    shard->begin_update();
    // A rank that owns nothing of a layer gathers all the same.
    if (shard->layout().owned_size() > 0) {
      float* owned = shard->owned_params();
      std::swap_ranges(owned, owned + shard->layout().owned_size(), shard->average());
    }
    shard->start_gather();
    shard->finish_gather();
  }
}

}  // namespace chiliad::train
