#include "chiliad/parallel/replicated_sum.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <span>

#include "chiliad/base/planted.h"
#include "chiliad/comm/part_sum.h"

namespace chiliad::parallel {
namespace {

/// Runs of values that tensor-parallel peers have too, in the order of the layers.
std::vector<std::span<float>> replicated_runs(std::vector<std::unique_ptr<ShardedLayer>>& layers) {
  std::vector<std::span<float>> runs;
  for (auto& layer : layers) {
    if (!layer->trained()) continue;
    for (const auto& piece : layer->layout().owned_pieces()) {
      if (!piece.replicated) continue;
      runs.emplace_back(layer->owned_gradients() + piece.offset, static_cast<size_t>(piece.count));
    }
  }
  return runs;
}

}  // namespace

void sum_replicated_gradients(comm::Group& ranks, std::vector<std::unique_ptr<ShardedLayer>>& layers) {
  if (ranks.size() == 1 || planted_bug("missing_replicated_sum")) return;
  const auto runs = replicated_runs(layers);
  int64_t total = 0;
  for (const auto& run : runs) total += std::ssize(run);
  at::Tensor own = at::empty({total}, at::kFloat);
  float* out = own.mutable_data_ptr<float>();
  for (const auto& run : runs) out = std::copy(run.begin(), run.end(), out);
  at::Tensor all = at::empty({total * ranks.size()}, at::kFloat);
  ranks.all_gather(all, own)->wait();
  std::vector<const void*> parts;
  for (int rank = 0; rank < ranks.size(); ++rank) parts.push_back(all.const_data_ptr<float>() + rank * total);
  comm::sum_parts(parts, comm::PartType::kF32, total, own.mutable_data_ptr<float>(), false);
  const float* in = own.const_data_ptr<float>();
  for (const auto& run : runs) {
    std::copy_n(in, run.size(), run.data());
    in += run.size();
  }
}

}  // namespace chiliad::parallel
