#pragma once

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// `pack` with max_tokens > 0, but for the counts of the step.
[[nodiscard]] PackedStep pack_rows(const Step& step, const std::vector<Bucket>& buckets,
                                   const PackOptions& options);

/// Positions of an item in a row.
[[nodiscard]] int64_t row_positions(const Item& item, const std::vector<Bucket>& buckets,
                                    const PackOptions& options);

/// Work of an item in a row, without the row's overhead, by component.
[[nodiscard]] Works row_shares(const Item& item, const std::vector<Bucket>& buckets,
                               const PackOptions& options);

}  // namespace chiliad::stepplan
