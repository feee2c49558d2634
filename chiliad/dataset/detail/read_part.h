#pragma once

#include <cstddef>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/index/part_source.h"

namespace chiliad::dataset::detail {

/// The part's bytes from its file, or from `source` where that is not null. Throws CorruptData where they are
/// not those that were indexed.
[[nodiscard]] std::vector<std::byte> read_part(const index::Index& index, const index::Shard& shard,
                                               const index::Part& part, index::PartSource* source = nullptr);

}  // namespace chiliad::dataset::detail
