#pragma once

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// Mode pad, for comparison: items go to ranks in turn, each rank's become micro-batches in the plan's order,
/// and all of one are as large as its largest: pictures as wide and as high, captions and documents as long.
[[nodiscard]] PackedStep pack_padded(const Step& step, const std::vector<Bucket>& buckets,
                                     const PackOptions& options);

/// What a padded micro-batch is as large as.
struct PaddedShape {
  Bucket picture;
  int64_t tokens = 0;
};
[[nodiscard]] PaddedShape padded_shape(const std::vector<Item>& items, const std::vector<Bucket>& buckets);

}  // namespace chiliad::stepplan
