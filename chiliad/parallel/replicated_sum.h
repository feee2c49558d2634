#pragma once

#include <memory>
#include <vector>

#include "chiliad/comm/group.h"
#include "chiliad/parallel/sharded_layer.h"

namespace chiliad::parallel {

/// Completes the owned gradients of parameters of which every tensor-parallel rank has a copy: each has a
/// partial gradient (layers/tensor_parallel.h); all get the sum, added in rank order, in one exchange.
void sum_replicated_gradients(comm::Group& ranks, std::vector<std::unique_ptr<ShardedLayer>>& layers);

}  // namespace chiliad::parallel
