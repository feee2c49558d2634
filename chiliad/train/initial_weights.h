#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

#include "chiliad/parallel/sharded_layer.h"

namespace chiliad::train {

/// A whole parameter, fp32, in its logical shape.
using MakeParam = std::function<at::Tensor(const spec::ParamDecl&)>;

/// Gives this rank's shard of every parameter of a layer its initial values, and the moving average the same.
/// `make` is asked once for each parameter that this rank has a part of.
void set_weights(parallel::ShardedLayer& shard, const MakeParam& make);

/// Values that are a function of seed and name alone. `zero` is what parameters that start at zero are given.
void set_initial_weights(parallel::ShardedLayer& shard, uint64_t seed, spec::Init zero = spec::Init::kZero);

}  // namespace chiliad::train
