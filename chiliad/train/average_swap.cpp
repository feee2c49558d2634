#include "chiliad/train/average_swap.h"

#include <algorithm>

namespace chiliad::train {

void swap_averages(std::vector<std::unique_ptr<parallel::ShardedLayer>>& shards) {
  for (auto& shard : shards) {
    if (!shard->trained()) continue;
    float* average = shard->average();
    if (average == nullptr) continue;
    shard->begin_update();
    float* owned = shard->owned_params();
    std::swap_ranges(owned, owned + shard->layout().owned_size(), average);
    shard->start_gather();
    shard->finish_gather();
  }
}

}  // namespace chiliad::train
