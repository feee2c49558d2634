#include "chiliad/planner/activation_memory.h"

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/timeline.h"

namespace chiliad::planner {

RecomputeModes uniform_modes(const spec::LayerTable& table, const spec::ParallelOptions& options) {
  CHILIAD_CHECK(options.recompute != "auto");
  auto mode = spec::Recompute::kNone;
  if (options.recompute == "selective") mode = spec::Recompute::kSelective;
  if (options.recompute == "layers") mode = spec::Recompute::kLayers;
  RecomputeModes modes(table.layers.size(), mode);
  modes.back() = spec::Recompute::kNone;
  return modes;
}

ActivationMemory activation_memory(const spec::LayerTable& table, const spec::RunFile& file,
                                   const spec::BatchShape& shape, const RecomputeModes& modes) {
  return detail::Timeline(table, file, shape).run(modes);
}

}  // namespace chiliad::planner
