#pragma once

#include <span>

#include "chiliad/stepplan/bucket_costs.h"
#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// `pack_buckets` where ranks wait in each slot.
[[nodiscard]] PackedStep pack_slots(const Step& step, const std::vector<Bucket>& buckets,
                                    const PackOptions& options);

/// A micro-batch of entries of one bucket, the longest caption first, with its work.
[[nodiscard]] MicroBatch finish_slot(std::span<const Entry> entries, const std::vector<Bucket>& buckets,
                                     const PackOptions& options);

}  // namespace chiliad::stepplan
