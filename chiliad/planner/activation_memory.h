#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/spec/layer_table.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::planner {

/// Bytes of tensors of one rank that come and go within a step: a micro-batch's inputs, what its layers keep
/// for backward, gradients on their way and what operators need for a moment. state_memory is beside it.
struct ActivationMemory {
  int64_t inputs = 0;  ///< of the micro-batch
  int64_t kept = 0;    ///< by the layers, when the loss is made
  int64_t peak = 0;    ///< most at once, all of it
};

/// How each layer of the table recomputes.
using RecomputeModes = std::vector<spec::Recompute>;

/// The modes that parallel.recompute names, for every layer alike; not auto. The last layer's backward comes
/// at once: it has nothing to save.
[[nodiscard]] RecomputeModes uniform_modes(const spec::LayerTable& table,
                                           const spec::ParallelOptions& options);

/// Of the run's layout on the rank that has most, for a micro-batch of `shape`. Slots run one after the
/// other, so that the largest micro-batch is that of the step. modes: one a layer.
[[nodiscard]] ActivationMemory activation_memory(const spec::LayerTable& table, const spec::RunFile& file,
                                                 const spec::BatchShape& shape, const RecomputeModes& modes);

}  // namespace chiliad::planner
