#pragma once

#include "chiliad/stepplan/pack.h"

namespace chiliad::stepplan {

/// `pack` in mode pack: rows of whole documents, or pictures, of at most options.max_tokens positions.
[[nodiscard]] PackedStep pack_rows(const Step& step, const std::vector<Bucket>& buckets,
                                   const PackOptions& options);

/// Positions that an item takes of a row.
[[nodiscard]] int64_t row_positions(const Item& item, const std::vector<Bucket>& buckets,
                                    const PackOptions& options);
/// What an item adds to a row, without the row's overhead.
[[nodiscard]] double row_share(const Item& item, const std::vector<Bucket>& buckets,
                               const PackOptions& options);

}  // namespace chiliad::stepplan
