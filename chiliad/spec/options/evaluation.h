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
  double guidance = 2.0;                             ///< 1: none; from_conditional, 0: none
  std::string guidance_form = "from_unconditional";  ///< or from_conditional (generate/guidance.h)
  int64_t guidance_channels = 0;                     ///< of the latents, that are guided; 0: all
  double embedded_guidance = 0.0;  ///< of networks with a guidance input; 0: objective.embedded_guidance
};

}  // namespace chiliad::spec
