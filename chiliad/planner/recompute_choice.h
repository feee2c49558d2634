#pragma once

#include <string>
#include <vector>

#include "chiliad/planner/activation_memory.h"

namespace chiliad::planner {

/// What each layer recomputes, and what that comes to on the rank that has most.
struct RecomputeChoice {
  RecomputeModes modes;
  ActivationMemory activations;  ///< of the micro-batch with the highest peak
  double extra_flops = 0.0;      ///< of products made again, for the forward of that micro-batch, as a share
                                 ///< of its forward and backward
  bool known = true;             ///< false: the family's activations are not predicted yet, and are 0 here
  int64_t state = 0;             ///< beside them: StateMemory::training
  [[nodiscard]] int64_t peak() const { return state + activations.peak; }
  /// "none", "selective", or "8 none, 4 selective, 2 layers".
  [[nodiscard]] std::string to_string() const;
};

/// As parallel.recompute says; auto: the modes with which no micro-batch of `shapes` is predicted to need
/// more than parallel.memory_budget, at the least work. A function of what is given alone, so that all ranks
/// choose alike. Throws InvalidInput with the least that is possible where the budget is below it.
///
/// The choice is greedy: steps none -> selective -> layers, by bytes freed for each second of work, earlier
/// layers first (their memory stays longest), until it fits; then steps that are not needed are taken back,
/// the dearest first.
[[nodiscard]] RecomputeChoice choose_recompute(const spec::LayerTable& table, const spec::RunFile& file,
                                               const std::vector<spec::BatchShape>& shapes);

}  // namespace chiliad::planner
