#pragma once

#include <string>

#include "chiliad/index/columns.h"

namespace chiliad::index::detail {

/// Throws CorruptData (place `place`) unless every run and number of the shard points into its tables,
/// captions lie in their parts, parts in their files, blocks cover the samples in order, and the content
/// digest is that of the columns.
void check_shard(const Shard& shard, const std::string& place);

}  // namespace chiliad::index::detail
