#include "chiliad/train/initial_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/model/build_model.h"

namespace chiliad::train {

void set_weights(parallel::ShardedLayer& shard, const MakeParam& make) {
  const spec::ParamDecl* made = nullptr;
  at::Tensor whole;
  for (const auto& piece : shard.layout().shard_pieces()) {
    // A rank keeps its boxes of the whole parameter, which follow each other.
    if (piece.param != made) {
      made = piece.param;
      whole = make(*made);
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

void set_initial_weights(parallel::ShardedLayer& shard, uint64_t seed, spec::Init zero) {
  set_weights(shard, [&](spec::ParamDecl param) {
    if (param.init == spec::Init::kZero) param.init = zero;
    const at::Tensor whole = at::empty(param.shape.sizes(), at::kFloat);
    model::initialise(param, seed, whole);
    return whole;
  });
}

}  // namespace chiliad::train
