#include "chiliad/train/mesh_bytes.h"

#include <algorithm>
#include <vector>

#include "chiliad/parallel/layer_layout.h"
#include "chiliad/spec/bucket_tables.h"
#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/shape_stages.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::train {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kSmallMessages = 8 << 20;
constexpr int64_t kSpare = 1 << 20;
constexpr int64_t kAlignment = 64;  // of what comm::Group::share gives

/// Positions of the largest micro-batch that the run file allows.
int64_t most_tokens(const spec::RunFile& run) {
  if (run.data.mode == "pack") return run.data.micro_batch_tokens;
  int64_t most = 0;
  for (const spec::DataOptions& stage : spec::stage_options(run.data)) {
    const int64_t side = spec::longest_side(stage) / spec::token_pixels(run.model);
    most = std::max(most, stage.micro_batch_items * std::max(side * side, run.model.text_max_tokens));
  }
  return most;
}

/// Of so many values in memory that peers read in place.
int64_t shared_bytes(int64_t num_values, int64_t element) {
  return (num_values * element + kAlignment - 1) / kAlignment * kAlignment;
}

/// Bytes of a rank, of the one that has most.
struct Sizes {
  int64_t shards = 0;          // of all layers
  int64_t compute_shards = 0;  // the same in the compute type
  int64_t trained_shards = 0;  // of the trained layers
  int64_t gradients = 0;       // whole, of all trained layers
  int64_t at_work = 0;         // whole, in the compute type, of the largest trained layer
  int64_t replicated = 0;      // that tensor-parallel ranks have copies of
};

int64_t compute_element(const spec::RunFile& run) {
  return run.parallel.compute == "bf16" ? 2 : kFloat;
}

void add_shards(const spec::RunFile& run, const parallel::MeshShape& shape, Sizes& most) {
  const auto table = spec::make_layer_table(run.model);
  for (int shard = 0; shard < shape.dp_shard; ++shard) {
    Sizes sizes;
    for (const auto& layer : table.layers) {
      const int64_t values = parallel::LayerLayout(layer, shape, {0, shard, 0}).shard_size();
      sizes.shards += shared_bytes(values, kFloat);
      sizes.compute_shards += shared_bytes(values, compute_element(run));
      if (run.optimizer.trains(layer.component)) sizes.trained_shards += shared_bytes(values, kFloat);
    }
    most.shards = std::max(most.shards, sizes.shards);
    most.compute_shards = std::max(most.compute_shards, sizes.compute_shards);
    most.trained_shards = std::max(most.trained_shards, sizes.trained_shards);
  }
}

Sizes sizes_of(const spec::RunFile& run, const parallel::MeshShape& shape) {
  Sizes sizes;
  add_shards(run, shape, sizes);
  for (const auto& layer : spec::make_layer_table(run.model).layers) {
    if (!run.optimizer.trains(layer.component)) continue;
    const auto local = spec::tensor_shard(layer, shape.tp);
    sizes.gradients += shared_bytes(local.num_params(), kFloat);
    sizes.at_work = std::max(sizes.at_work, shared_bytes(local.num_params(), compute_element(run)));
    for (const auto& param : local.params) {
      if (param.split == spec::Split::kNone) sizes.replicated += kFloat * param.shape.count();
    }
  }
  return sizes;
}

}  // namespace

parallel::MeshBytes mesh_bytes(const spec::RunFile& run, const parallel::MeshShape& shape) {
  const Sizes sizes = sizes_of(run, shape);
  parallel::MeshBytes bytes;
  bytes.control.room = kSmallMessages;
  bytes.gather = {kSpare, sizes.compute_shards};
  // Gradients of the layer at work and of those that are reduced, or of all where they stay for the step.
  bytes.reduce = {kSpare, run.parallel.reshard_after_forward
                              ? (1 + run.parallel.prefetch_layers) * sizes.at_work
                              : sizes.gradients};
  bytes.replicas = {kSpare, sizes.trained_shards};
  if (shape.dp_shard > 1 && compute_element(run) == kFloat) {
    bytes.replicas.room +=
        sizes.shards;  // owned runs of all layers: the shards lie in the memory of the gather
  } else {
    bytes.replicas.kept += sizes.shards;
  }
  bytes.tp.room = kSpare + 2 * kFloat * most_tokens(run) * run.model.width;
  bytes.tp_control.room = kSpare + sizes.replicated;
  return bytes;
}

}  // namespace chiliad::train
