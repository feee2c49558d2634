#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chiliad::spec {

/// Section `evaluation`: what a run measures and shows of itself, with the moving average where it has one.
struct EvaluationOptions {
  int64_t every = 0;          ///< steps between losses over the items of data.held_out; 0: none
  int64_t draws = 1;          ///< times and noises at which each of those items is measured
  int64_t samples_every = 0;  ///< steps between pictures made from the prompts; 0: none
  std::vector<std::string> prompts;
  int64_t solver_steps = 20;
  double guidance = 2.0;  ///< 1: none
};

}  // namespace chiliad::spec
