#pragma once

#include <cstdint>

#include "chiliad/spec/options/optimizer.h"

namespace chiliad::optim {

/// Rate of optimizer step `step` (from 0) of `total`: linear warm-up from 0, then constant, cosine to 0, or
/// linear to 0 over the last decay_fraction of the run.   Source: transformers
/// get_{constant,cosine}_schedule_with_warmup.
[[nodiscard]] double learning_rate(const spec::OptimizerOptions& options, int64_t step, int64_t total);

/// Cosine part of that rate: `step` of `length` steps after the warm-up, `cycles` waves (0.5: from 1 to 0).
[[nodiscard]] double cosine_factor(int64_t step, int64_t length, double cycles = 0.5);

/// Factor that brings a gradient of `norm` to at most `max_norm` (0: 1).   Source: torch clip_grad_norm_.
[[nodiscard]] double clip_factor(double norm, double max_norm);

}  // namespace chiliad::optim
