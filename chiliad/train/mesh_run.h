#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// What some steps of a mesh came to, put together from all ranks.
struct MeshRun {
  std::vector<double> losses;                           ///< [step]
  std::vector<double> grad_norms;                       ///< [step]
  std::vector<std::string> items;                       ///< [step], hex digest
  std::map<std::string, std::vector<float>> gradients;  ///< of the first step, mean over its items
  int64_t unequal_steps = 0;                            ///< steps in which the ranks have different work
  int64_t state_bytes = 0;                              ///< Trainer::state_bytes, of the rank that has most
  int64_t peak_bytes = 0;                               ///< of tensors in a step, of the rank that has most
};

struct MeshRunOptions {
  /// Draws weights that would start at zero: behind a head of zeros no gradient of the first step is anything
  /// else.
  bool draw_zeros = false;
  std::function<void(int64_t)> watch;  ///< told by the thread of rank 0 how many steps are done
};

/// Trains the first `num_steps` steps of a run with the ranks of a mesh as threads of this process, one
/// intra-op thread each. `shape` stands for the run file's own layout; num_steps: at most run.steps. Nothing
/// is written. Throws what a rank threw.
[[nodiscard]] MeshRun run_mesh(const spec::RunFile& file, const index::Index& index,
                               const parallel::MeshShape& shape, int64_t num_steps,
                               const MeshRunOptions& options = {});

/// The largest difference of two gradients.
struct GradientDifference {
  double error = 0.0;     ///< over the largest value of the first; infinite where a value is not finite
  std::string parameter;  ///< that has it; empty where all values are equal
};
[[nodiscard]] GradientDifference compare_gradients(const MeshRun& want, const MeshRun& got);

}  // namespace chiliad::train
