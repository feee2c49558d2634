#pragma once

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// `pack` in mode bucket, but for the counts of the step.
[[nodiscard]] PackedStep pack_buckets(const Step& step, const std::vector<Bucket>& buckets,
                                      const PackOptions& options);

/// The least work of the largest micro-batch where `step` is cut into at most `count` of them, of one bucket
/// each and at most options.max_items: whole items allow no less, whoever cuts.
[[nodiscard]] double least_largest(const Step& step, const std::vector<Bucket>& buckets,
                                   const PackOptions& options, size_t count);

}  // namespace chiliad::stepplan
