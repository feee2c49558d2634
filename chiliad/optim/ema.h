#pragma once

#include <cstdint>

#include "chiliad/spec/options/optimizer.h"

namespace chiliad::optim {

/// How the decay of a moving average of weights rises to its final value.
enum class EmaWarmup {
  kNone,      ///< the final value from the first update on
  kRational,  ///< (1 + n) / (10 + n)
  kPower,     ///< 1 - (1 + n / inv_gamma)^-power
};

struct EmaOptions {
  double decay = 0.9999;  ///< final value, and the largest
  EmaWarmup warmup = EmaWarmup::kRational;
  double inv_gamma = 1.0;         ///< of kPower
  double power = 2.0 / 3.0;       ///< of kPower
  int64_t update_after_step = 0;  ///< with a warm-up: updates after which the average starts to lag
  double min_decay = 0.0;         ///< with a warm-up: smallest value once it lags
};

[[nodiscard]] EmaOptions ema_options(const spec::OptimizerOptions& options);

/// Decay at optimizer update `update` (from 1). With a warm-up n = update - update_after_step - 1; while n <=
/// 0 the decay is 0: the average is the parameter itself.   Source: diffusers EMAModel.get_decay; kNone: DiT.
[[nodiscard]] double ema_decay(const EmaOptions& options, int64_t update);

}  // namespace chiliad::optim
