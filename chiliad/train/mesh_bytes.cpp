#include "chiliad/train/mesh_bytes.h"

#include <algorithm>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::train {
namespace {

constexpr int64_t kFloat = 4;
constexpr int64_t kSmallMessages = 8 << 20;

/// Positions of the largest micro-batch that the run file allows.
int64_t most_tokens(const spec::RunFile& run) {
  if (run.data.mode == "pack") return run.data.micro_batch_tokens;
  const int64_t side = run.data.bucket_max / run.model.patch;
  return run.data.micro_batch_items * std::max(side * side, run.model.text_max_tokens);
}

/// Parameters of a rank's layers.
struct Sizes {
  int64_t all = 0;
  int64_t largest = 0;     // of a layer
  int64_t replicated = 0;  // that tensor-parallel ranks have copies of
};

Sizes sizes_of(const spec::RunFile& run) {
  Sizes sizes;
  for (const auto& layer : spec::make_layer_table(run.model).layers) {
    const auto local = spec::tensor_shard(layer, static_cast<int>(run.parallel.tp));
    sizes.all += local.num_params();
    sizes.largest = std::max(sizes.largest, local.num_params());
    for (const auto& param : local.params) {
      if (param.split == spec::Split::kNone) sizes.replicated += param.shape.count();
    }
  }
  return sizes;
}

}  // namespace

parallel::MeshBytes mesh_bytes(const spec::RunFile& run) {
  const Sizes sizes = sizes_of(run);
  const int64_t shards = run.parallel.dp_shard;
  parallel::MeshBytes bytes;
  bytes.control = kSmallMessages;
  // Two layers are under way at once. Shards are cut at rows: a largest one may be a whole layer.
  bytes.gather = 2 * kFloat * sizes.largest;
  bytes.reduce = 2 * kFloat * sizes.largest;
  // All layers are: they are awaited at the end of the step.
  bytes.replicas = kFloat * (sizes.all / shards + sizes.largest);
  bytes.tp = 2 * kFloat * most_tokens(run) * run.model.width;
  bytes.tp_control = kFloat * sizes.replicated;
  for (auto* kind : {&bytes.gather, &bytes.reduce, &bytes.replicas, &bytes.tp, &bytes.tp_control})
    *kind += 1 << 20;
  return bytes;
}

}  // namespace chiliad::train
