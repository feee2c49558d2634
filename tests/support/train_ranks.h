#pragma once

// Header only: it needs tensors, and the support library is free of them. For test folders with a file TORCH.

#include <fmt/core.h>

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

/// The larger value; what is not a number is larger than any.
inline double larger(double a, double b) {
  return std::isnan(a) || a > b ? a : b;
}

/// Largest difference of two gradients over the largest value of the first.
inline double gradient_error(const RanksResult& want, const RanksResult& got) {
  return train::compare_gradients(want, got).error;
}

/// Largest relative difference of the losses of steps [begin, end).
inline double loss_error(const RanksResult& want, const RanksResult& got, size_t begin, size_t end) {
  double error = 0.0;
  for (size_t i = begin; i < end; ++i) {
    error = larger(error, std::abs(want.losses[i] - got.losses[i]) / std::abs(want.losses[i]));
  }
  return error;
}

/// What a run of several ranks has other than one device's, or nothing. fp32; layouts differ in the order of
/// sums alone.
inline std::string layout_difference(const RanksResult& one, const RanksResult& several) {
  if (several.items != one.items) return "items";
  const double gradients = gradient_error(one, several);
  if (!(gradients <= 2e-6)) return fmt::format("gradients of the first step by {:.2g}", gradients);
  const double losses = loss_error(one, several, 0, one.losses.size());
  if (!(losses <= 1e-5)) return fmt::format("losses by {:.2g}", losses);
  for (size_t step = 0; step < one.grad_norms.size(); ++step) {
    const double norms = std::abs(several.grad_norms[step] / one.grad_norms[step] - 1.0);
    if (!(norms <= 2e-5)) return fmt::format("gradient norm of step {} by {:.2g}", step, norms);
  }
  return {};
}

}  // namespace chiliad::test
