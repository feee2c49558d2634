#include "chiliad/parallel/layer_layout.h"

#include <algorithm>
#include <numeric>

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
  const auto holder = [](int index, int count) {
    return planted_bug("swapped_ranks") ? (index + 1) % count : index;
  };
  const int shard = holder(place.shard, shape.dp_shard);
  const int owner = holder(place.replica, shape.dp_replicate);
  for (int i = 0; i < shape.dp_shard; ++i) {
    const int held = holder(i, shape.dp_shard);
    shard_sizes_.push_back(cut(held + 1, 0) - cut(held, 0));
  }
  for (int i = 0; i < shape.dp_replicate; ++i) {
    const int held = holder(i, shape.dp_replicate);
    owned_sizes_.push_back(cut(shard, held + 1) - cut(shard, held));
  }
  shard_begin_ = std::accumulate(shard_sizes_.begin(), shard_sizes_.begin() + place.shard, int64_t{0});
  shard_end_ = shard_begin_ + shard_sizes_[static_cast<size_t>(place.shard)];
  owned_begin_ = cut(shard, owner) - cut(shard, 0);
  owned_size_ = owned_sizes_[static_cast<size_t>(place.replica)];
  shard_pieces_ = pieces_of(local, cut(shard, 0), cut(shard + 1, 0));
  owned_pieces_ = pieces_of(local, cut(shard, owner), cut(shard, owner) + owned_size_);
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
