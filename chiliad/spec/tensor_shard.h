#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "chiliad/base/shape.h"
#include "chiliad/spec/layer_table.h"

namespace chiliad::spec {

/// The part of `length` that member `index` of `count` has: as even as possible, the first ones larger.
/// returns: [begin, end)
[[nodiscard]] std::pair<int64_t, int64_t> even_part(int64_t length, int index, int count);

/// Into how many chunks tensor-parallel ranks cut the rows of `items` sequences, so that one can be exchanged
/// while the product of another is made (layers/parallel_linear.h). The same on all ranks.
[[nodiscard]] int64_t num_row_chunks(int64_t length, int64_t items, int64_t size);

/// What each of `size` tensor-parallel ranks holds of a layer: the same parameters with their local shapes.
/// Throws InvalidInput naming a parameter whose cut dimension `size` does not divide.
[[nodiscard]] LayerDecl tensor_shard(const LayerDecl& layer, int size);

/// A run of rows of a local parameter that is one box of the logical one.
struct ShardBox {
  int64_t first_row = 0;  ///< local
  int64_t num_rows = 0;
  Box box;  ///< in the logical parameter
};

/// Local rows [begin, end) of `whole` (its logical declaration) on tensor-parallel rank `rank`, as boxes in
/// order: one, or one for each fused part that they touch. A vector's rows are its elements.
[[nodiscard]] std::vector<ShardBox> shard_boxes(const ParamDecl& whole, int rank, int size, int64_t begin,
                                                int64_t end);

}  // namespace chiliad::spec
