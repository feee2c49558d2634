#pragma once

#include <vector>

#include "chiliad/spec/layer_table.h"

namespace chiliad::spec {

/// Forward + backward where only some layers are trained: a frozen layer has no gradients of weights, and
/// below the first trained one there is no backward. trained: of each layer.
[[nodiscard]] Work trained_work(const LayerTable& table, const BatchShape& shape,
                                const std::vector<bool>& trained);

}  // namespace chiliad::spec
