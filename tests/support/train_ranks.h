#pragma once

// Header only: it needs tensors, and the support library is free of them. For test folders with a file TORCH.

#include <algorithm>
#include <cmath>

#include "chiliad/dataset/build_index.h"
#include "chiliad/index/index.h"
#include "chiliad/train/mesh_run.h"

namespace chiliad::test {

using train::run_mesh;
using RanksResult = train::MeshRun;

/// run_mesh for replicated data parallelism.
inline RanksResult run_ranks(const spec::RunFile& file, const index::Index& index, int num_ranks,
                             int64_t num_steps) {
  return run_mesh(file, index, {.dp_replicate = num_ranks}, num_steps);
}

/// Largest difference of two gradients over the largest value of the first.
inline double gradient_error(const RanksResult& want, const RanksResult& got) {
  return train::compare_gradients(want, got).error;
}

/// Largest relative difference of the losses of steps [begin, end).
inline double loss_error(const RanksResult& want, const RanksResult& got, size_t begin, size_t end) {
  double error = 0.0;
  for (size_t i = begin; i < end; ++i) {
    error = std::max(error, std::abs(want.losses[i] - got.losses[i]) / std::abs(want.losses[i]));
  }
  return error;
}

}  // namespace chiliad::test
