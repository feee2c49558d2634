#pragma once

#include <vector>

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// max / mean of the ranks' work at synchronisation points: how long the slowest keeps the others waiting.
struct Balance {
  double total = 1.0;                ///< at the worst point
  std::vector<double> components{};  ///< of each component, at its worst point
  double time = 1.0;                 ///< of all points together: sum of the maxima / sum of the means
};

/// At the points where ranks wait for each other: the step, or each of its slots.
[[nodiscard]] Balance balance_of(const PackedStep& packed, const PackOptions& options);

/// What whole items allow at best, in `packed`'s number of slots: some rank gets the largest item, some rank
/// at least ceil(items / ranks) of them, and some rank k + 1 of the k * ranks + 1 largest; in each slot the
/// same of micro-batches, which are of one bucket. A lower bound: `balance_of` may not reach it.
[[nodiscard]] Balance granularity_of(const PackedStep& packed, const std::vector<Bucket>& buckets,
                                     const PackOptions& options);

/// Lower bound of max / mean where `shares`, which cannot be divided, go to `bins`. `total`: their sum and
/// what else the bins hold.
[[nodiscard]] double granularity_bound(std::vector<double> shares, size_t bins, double total);

}  // namespace chiliad::stepplan
