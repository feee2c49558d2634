#include "chiliad/optim/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "chiliad/base/error.h"

namespace chiliad::optim {

double cosine_factor(int64_t step, int64_t length, double cycles) {
  const double progress = static_cast<double>(step) / static_cast<double>(std::max<int64_t>(1, length));
  return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * 2.0 * cycles * progress)));
}

double learning_rate(const spec::OptimizerOptions& options, int64_t step, int64_t total) {
  if (step < options.warmup_steps) {
    return options.lr * static_cast<double>(step) /
           static_cast<double>(std::max<int64_t>(1, options.warmup_steps));
  }
  if (options.decay == "constant") return options.lr;
  if (options.decay == "cosine") {
    return options.lr * cosine_factor(step - options.warmup_steps, total - options.warmup_steps);
  }
  if (options.decay == "linear") {
    const double length = std::max(1.0, static_cast<double>(total) * options.decay_fraction);
    return options.lr * std::clamp(static_cast<double>(total - step) / length, 0.0, 1.0);
  }
  throw InvalidInput("optimizer.decay",
                     fmt::format("expected constant, linear or cosine, got '{}'", options.decay));
}

double clip_factor(double norm, double max_norm) {
  if (max_norm <= 0.0) return 1.0;
  return std::min(1.0, max_norm / (norm + 1e-6));
}

}  // namespace chiliad::optim
