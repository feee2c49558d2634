#include "chiliad/optim/ema.h"

#include <algorithm>
#include <cmath>

namespace chiliad::optim {

EmaOptions ema_options(const spec::OptimizerOptions& options) {
  EmaOptions made;
  made.decay = options.ema;
  if (options.ema_warmup == "none") made.warmup = EmaWarmup::kNone;
  if (options.ema_warmup == "power") made.warmup = EmaWarmup::kPower;
  made.inv_gamma = options.ema_inv_gamma;
  made.power = options.ema_power;
  made.update_after_step = options.ema_after;
  made.min_decay = options.ema_min;
  return made;
}

double ema_decay(const EmaOptions& options, int64_t update) {
  if (options.warmup == EmaWarmup::kNone) return options.decay;
  const auto n = static_cast<double>(update - options.update_after_step - 1);
  if (n <= 0.0) return 0.0;
  const double rising = options.warmup == EmaWarmup::kRational
                            ? (1.0 + n) / (10.0 + n)
                            : 1.0 - std::pow(1.0 + n / options.inv_gamma, -options.power);
  return std::max(options.min_decay, std::min(rising, options.decay));
}

}  // namespace chiliad::optim
