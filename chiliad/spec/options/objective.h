#pragma once

#include <cstdint>
#include <string>

namespace chiliad::spec {

/// Section `objective`: flow matching, x_t = (1 - t) x0 + t noise, velocity = noise - x0.
struct ObjectiveOptions {
  std::string kind = "flow";
  std::string prediction = "sample";   ///< what the network puts out: sample (x0) or velocity
  std::string loss = "velocity";       ///< space of the squared error: velocity or sample
  double min_time = 0.1;               ///< divisor floor when a predicted sample becomes a velocity
  std::string times = "logit_normal";  ///< logit_normal or uniform
  double times_mean = 0.0;
  double times_std = 1.0;
  double shift = 1.0;  ///< static shift of the times
  double caption_dropout = 0.1;
};

}  // namespace chiliad::spec
