#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace chiliad::spec {

/// Section `optimizer`: AdamW with decoupled weight decay (matrices only), clipping by global norm, warm-up,
/// decay, EMA.
struct OptimizerOptions {
  std::string kind = "adamw";
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  double clip = 1.0;  ///< 0: no clipping
  int64_t warmup_steps = 0;
  std::string decay = "constant";   ///< constant, linear or cosine
  double decay_fraction = 1.0;      ///< linear: the last part of the run over which the rate falls to 0
  std::vector<std::string> frozen;  ///< components that are not trained: no gradients, no optimizer state
  double ema = 0.0;                 ///< decay of the moving average of the weights; 0: none
  // How that decay rises to its final value (optim/ema.h, where the formulas are).
  std::string ema_warmup = "rational";  ///< none, rational or power
  double ema_inv_gamma = 1.0;           ///< power
  double ema_power = 2.0 / 3.0;         ///< power
  int64_t ema_after = 0;                ///< updates before which the average is the weights themselves
  double ema_min = 0.0;                 ///< least decay after those

  [[nodiscard]] bool trains(const std::string& component) const {
    return std::find(frozen.begin(), frozen.end(), component) == frozen.end();
  }
};

}  // namespace chiliad::spec
