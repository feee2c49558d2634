#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/parallel/mesh.h"
#include "chiliad/spec/run_file.h"

namespace chiliad::train {

/// One comparison of a layout with one device. The layout passes it where measured <= bound.
struct LayoutCheck {
  std::string what;  ///< with the unit of `measured`
  double measured = 0.0;
  double bound = 0.0;
  std::string where;  ///< of the largest difference: a parameter or a step; empty where all is equal

  [[nodiscard]] bool ok() const { return measured <= bound; }
};

struct LayoutReport {
  parallel::MeshShape shape;
  int64_t num_steps = 0;
  int64_t num_parameters = 0;        ///< that are trained
  int64_t num_without_gradient = 0;  ///< of them in the first step, where their gradients prove nothing
  std::vector<LayoutCheck> checks;

  [[nodiscard]] bool ok() const;
  [[nodiscard]] std::string to_table() const;
  [[nodiscard]] std::string to_json() const;
};

/// (steps done, steps in all, which run it is).
using VerifyProgress = std::function<void(int64_t, int64_t, const std::string&)>;

/// Runs the first `num_steps` steps of a run three times in this process and in fp32: on one rank, and twice
/// in the run file's layout with a thread for each rank. Compares items, gradients of the first step, losses
/// and gradient norms with those of one rank, and the two runs of the layout bit by bit. Weights that start
/// at zero are drawn, so that every parameter has a gradient in the first step. Writes nothing; the index has
/// its token columns. Throws InvalidInput for more than 64 ranks or more steps than the run has.
[[nodiscard]] LayoutReport verify_layout(const spec::RunFile& file, const index::Index& index,
                                         int64_t num_steps, const VerifyProgress& progress);

}  // namespace chiliad::train
