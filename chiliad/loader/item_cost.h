#pragma once

#include "chiliad/index/columns.h"

namespace chiliad::loader {

/// Predicted seconds of one core to decode a picture, from the index alone: a byte of JPEG costs 1/105 us, a
/// pixel 1/1030 us (2.6 GHz, AVX2), progressive ones 2.8 times that. Only its order matters.
[[nodiscard]] double decode_seconds(const index::Part& picture);

/// When an item should be begun, on a scale that has a step every `step_seconds`: as late as lets it be done
/// for its step, so that costly items begin before cheap ones of earlier steps, and of one step the costliest
/// first.
[[nodiscard]] double start_key(int64_t step, double step_seconds, double cost_seconds);

}  // namespace chiliad::loader
