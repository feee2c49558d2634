#pragma once

#include <cstdint>
#include <vector>

#include "chiliad/spec/layer_table.h"

namespace chiliad::parallel {

/// Cuts a layer's flat buffer (its parameters one after the other) into one run for each rank, as even as row
/// borders allow, so that a rank owns at most one box of rows of a parameter. Vectors may be cut anywhere.
/// returns: [ranks + 1].
[[nodiscard]] std::vector<int64_t> cut_at_rows(const spec::LayerDecl& layer, int ranks);

}  // namespace chiliad::parallel
