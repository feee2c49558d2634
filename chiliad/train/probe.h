#pragma once

#include <string>
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

/// What a forward and backward costs with each format and each multiplier of fp32 matrices that this machine
/// has.
struct FormatTime {
  std::string compute;   ///< fp32 or bf16
  std::string products;  ///< of fp32: library or own; of bf16: known
  double cpu_seconds = 0.0;
};

/// Medians of `repeats` interleaved measurements of the micro-batch of probe_shapes with most work. bf16 is
/// tried where the processor multiplies it, own where it has the kernels.
[[nodiscard]] std::vector<FormatTime> time_formats(const spec::RunFile& run, int repeats);

/// precision.compute and precision.products for the run: those that it names, and for auto the faster ones.
/// bf16 is less exact: it is taken where it saves at least a tenth.
struct FormatChoice {
  std::string compute;
  std::string products;
};
[[nodiscard]] FormatChoice choose_formats(const spec::RunFile& run, const std::vector<FormatTime>& times);

/// Rates that fit the measurements best (least relative squares, none negative).
[[nodiscard]] spec::Rates fit_rates(const std::vector<ShapeTime>& times);

}  // namespace chiliad::train
