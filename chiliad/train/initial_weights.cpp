#include "chiliad/train/initial_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/model/build_model.h"

namespace chiliad::train {

void set_initial_weights(parallel::ShardedLayer& shard, uint64_t seed, spec::Init zero) {
  const spec::ParamDecl* drawn = nullptr;
  at::Tensor whole;
  for (const auto& piece : shard.layout().shard_pieces()) {
    // Draws are of the whole parameter; a rank keeps its boxes of it, which follow each other.
    if (piece.param != drawn) {
      drawn = piece.param;
      spec::ParamDecl param = *drawn;
      if (param.init == spec::Init::kZero) param.init = zero;
      whole = at::empty(param.shape.sizes(), at::kFloat);
      model::initialise(param, seed, whole);
    }
    at::Tensor box = whole;
    for (int axis = 0; axis < piece.box.size.rank(); ++axis) {
      box = box.narrow(axis, piece.box.offset[axis], piece.box.size[axis]);
    }
    box = box.contiguous();
    std::copy_n(box.const_data_ptr<float>(), piece.count, shard.shard_params() + piece.offset);
  }
  shard.publish();
  if (shard.average() == nullptr) return;
  std::copy_n(shard.owned_params(), shard.layout().owned_size(), shard.average());
}

}  // namespace chiliad::train
