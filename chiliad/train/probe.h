#pragma once

#include <vector>

#include "chiliad/spec/run_file.h"
#include "chiliad/spec/work.h"

namespace chiliad::train {

/// A shape, its counted work, and the CPU seconds that forward + backward took on this thread.
struct ShapeTime {
  spec::BatchShape shape;
  spec::Work work;
  double cpu_seconds = 0.0;
};

/// Runs micro-batches of the given shapes through the run's model (random weights and inputs) and takes the
/// median of `repeats` measurements of each, interleaved.
[[nodiscard]] std::vector<ShapeTime> time_shapes(const spec::RunFile& run,
                                                 const std::vector<spec::BatchShape>& shapes, int repeats);

/// Shapes that span what the run's buckets and micro-batches can hold.
[[nodiscard]] std::vector<spec::BatchShape> probe_shapes(const spec::RunFile& run);

/// Rates that fit the measurements best (least relative squares, none negative).
[[nodiscard]] spec::Rates fit_rates(const std::vector<ShapeTime>& times);

}  // namespace chiliad::train
