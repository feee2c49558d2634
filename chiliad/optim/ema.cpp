#include "chiliad/optim/ema.h"

#include <algorithm>
#include <cmath>

namespace chiliad::optim {

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
