#include "chiliad/train/mesh_bytes.h"

#include <algorithm>

#include "chiliad/spec/layer_table.h"

namespace chiliad::train {
namespace {

constexpr int64_t kSmallMessages = 8 << 20;

/// Positions of the largest micro-batch that the run file allows.
int64_t most_tokens(const spec::RunFile& run) {
  if (run.data.mode == "pack") return run.data.micro_batch_tokens;
  const int64_t side = run.data.bucket_max / run.model.patch;
  return run.data.micro_batch_items * std::max(side * side, run.model.text_max_tokens);
}

}  // namespace

parallel::MeshBytes mesh_bytes(const spec::RunFile& run) {
  parallel::MeshBytes bytes;
  bytes.control = kSmallMessages;
  bytes.parameters = kSmallMessages + 4 * spec::make_layer_table(run.model).num_params();
  bytes.activations = kSmallMessages + 2 * 4 * most_tokens(run) * run.model.width;
  return bytes;
}

}  // namespace chiliad::train
