#include "chiliad/parallel/layer_layout.h"

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/parallel/row_cuts.h"
#include "chiliad/spec/tensor_shard.h"

namespace chiliad::parallel {

LayerLayout::LayerLayout(const spec::LayerDecl& whole, const MeshShape& shape, const MeshPlace& place)
    : whole_(whole), shape_(shape), place_(place) {
  const spec::LayerDecl local = spec::tensor_shard(whole, shape.tp);
  cuts_ = cut_at_rows(local, shape.dp());
  const auto cut = [&](int shard, int replica) {
    return cuts_[static_cast<size_t>(shard * shape_.dp_replicate + replica)];
  };
  for (int i = 0; i < shape.dp_shard; ++i) shard_sizes_.push_back(cut(i + 1, 0) - cut(i, 0));
  for (int i = 0; i < shape.dp_replicate; ++i)
    owned_sizes_.push_back(cut(place.shard, i + 1) - cut(place.shard, i));
  const bool swapped = planted_bug("swapped_ranks") && shape.dp_replicate > 1;
  const int owner = swapped ? (place.replica + 1) % shape.dp_replicate : place.replica;
  shard_begin_ = cut(place.shard, 0);
  shard_end_ = cut(place.shard + 1, 0);
  owned_begin_ = cut(place.shard, owner) - shard_begin_;
  owned_size_ = owned_sizes_[static_cast<size_t>(owner)];
  shard_pieces_ = pieces_of(local, shard_begin_, shard_end_);
  owned_pieces_ = pieces_of(local, shard_begin_ + owned_begin_, shard_begin_ + owned_begin_ + owned_size_);
}

std::vector<Piece> LayerLayout::pieces_of(const spec::LayerDecl& local, int64_t begin, int64_t end) const {
  std::vector<Piece> pieces;
  int64_t offset = 0;
  for (size_t i = 0; i < local.params.size(); ++i) {
    const Shape& shape = local.params[i].shape;
    const int64_t count = shape.count();
    const int64_t low = std::max(begin, offset);
    const int64_t high = std::min(end, offset + count);
    if (high > low) {
      const auto& param = whole_.params[i];
      const int64_t row = shape.rank() < 2 ? 1 : count / shape[0];
      CHILIAD_CHECK_EQ((low - offset) % row, 0);
      const auto boxes =
          spec::shard_boxes(param, place_.tp, shape_.tp, (low - offset) / row, (high - offset) / row);
      for (const auto& part : boxes) {
        pieces.push_back({&param, offset + part.first_row * row - begin, part.num_rows * row, part.box,
                          param.split == spec::Split::kNone});
      }
    }
    offset += count;
  }
  return pieces;
}

}  // namespace chiliad::parallel
