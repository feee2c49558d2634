#include "chiliad/planner/state_memory.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "chiliad/spec/tensor_shard.h"

namespace chiliad::planner {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kHalf = 2;
constexpr int64_t kSnapshotSlots = 2;

int64_t divided(int64_t count, int64_t parts) {
  return (count + parts - 1) / parts;
}

/// The largest of `sizes`, `count` of them, added up.
int64_t sum_of_largest(std::vector<int64_t> sizes, size_t count) {
  std::sort(sizes.begin(), sizes.end(), std::greater<>());
  int64_t sum = 0;
  for (size_t i = 0; i < std::min(count, sizes.size()); ++i) sum += sizes[i];
  return sum;
}

}  // namespace

StateMemory state_memory(const spec::LayerTable& table, const spec::RunFile& file) {
  const auto& parallel = file.parallel;
  const bool sharded = parallel.dp_shard > 1;
  const bool replicated = parallel.dp_replicate() > 1;
  std::vector<int64_t> layers;  // parameters of each, on this rank
  int64_t all = 0;
  int64_t trained = 0;
  for (const auto& layer : table.layers) {
    layers.push_back(spec::tensor_shard(layer, static_cast<int>(parallel.tp)).num_params());
    all += layers.back();
    if (file.optimizer.trains(layer.component)) trained += layers.back();
  }
  const bool half = parallel.compute == "bf16";
  const int64_t element = half ? kHalf : kFloat;  // of whole layers at work
  const int64_t trained_shard = divided(trained, parallel.dp_shard);
  const int64_t owned = kFloat * divided(trained_shard, parallel.dp_replicate());
  StateMemory memory;
  memory.weights = (kFloat + (half ? kHalf : 0)) * divided(all, parallel.dp_shard);
  memory.gradients = kFloat * trained_shard + (replicated ? owned : 0);
  memory.moments = 2 * owned;
  memory.average = file.optimizer.ema > 0.0 ? owned : 0;
  if (sharded && parallel.reshard_after_forward) {
    // The layer at work and those ahead; gradients of it and of those being reduced, as large as any.
    const auto at_once = static_cast<size_t>(1 + parallel.prefetch_layers);
    const int64_t gradients =
        static_cast<int64_t>(std::min(at_once, layers.size())) * sum_of_largest(layers, 1);
    memory.buffers += element * (sum_of_largest(layers, at_once) + gradients);
  } else if (sharded) {
    memory.buffers += element * all + kFloat * trained;
  }
  // Gradients of one micro-batch, until they are added to what stays for the step.
  if (half && !(sharded && parallel.reshard_after_forward))
    memory.buffers += kHalf * sum_of_largest(layers, 1);
  if (parallel.transport == "gloo") {
    // Parts that peers sent, until they are summed: of a layer, and of all shards at the end of a step.
    if (sharded) memory.buffers += kFloat * sum_of_largest(layers, 1);
    if (replicated) memory.buffers += kFloat * trained_shard;
  }
  memory.snapshots =
      kSnapshotSlots * (kFloat * divided(divided(all, parallel.dp_shard), parallel.dp_replicate()) +
                        memory.moments + memory.average);
  return memory;
}

}  // namespace chiliad::planner
