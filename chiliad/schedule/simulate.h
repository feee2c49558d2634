#pragma once

#include <span>
#include <vector>

#include "chiliad/schedule/program.h"

namespace chiliad::schedule {

/// Seconds of each kind of instruction of one rank.
struct Costs {
  std::vector<std::vector<double>> forward;   ///< [layer][slot]
  std::vector<std::vector<double>> backward;  ///< [layer][slot]
  std::vector<double> unshard;                ///< [layer], on the wire; only for sharded programs
  std::vector<double> reduce;                 ///< [layer], on the wire; only for sharded programs
  std::vector<double> reduce_replicas;        ///< [layer], on the wire
  std::vector<double> optimize;               ///< [layer]
  std::vector<double> gather;                 ///< [layer], on the wire
  double sum_replicated = 0.0;
  double agree = 0.0;
};

/// Of the rank that ends last.
struct Prediction {
  double seconds = 0.0;
  double compute = 0.0;
  double communication = 0.0;
  double exposed = 0.0;  ///< waiting for the wire, and for slower ranks
};

/// Prices a program that all ranks run: compute of each in order, the wire beside it, one transfer at a time,
/// each from when the last rank has started it. A transfer takes what the slowest rank's costs say.
[[nodiscard]] Prediction simulate(const Program& program, std::span<const Costs> ranks);
/// The same for ranks that are alike.
[[nodiscard]] Prediction simulate(const Program& program, const Costs& costs);

}  // namespace chiliad::schedule
