#include "chiliad/train/initial_weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/model/build_model.h"

namespace chiliad::train {

void set_initial_weights(parallel::ShardedLayer& shard, uint64_t seed, spec::Init zero) {
  for (const auto& piece : shard.layout().shard_pieces()) {
    // Draws are of the whole parameter; a rank keeps its box of it.
    at::Tensor whole = at::empty(piece.param->shape.sizes(), at::kFloat);
    spec::ParamDecl param = *piece.param;
    if (param.init == spec::Init::kZero) param.init = zero;
    model::initialise(param, seed, whole);
    for (int axis = 0; axis < piece.box.size.rank(); ++axis) {
      whole = whole.narrow(axis, piece.box.offset[axis], piece.box.size[axis]);
    }
    const at::Tensor box = whole.contiguous();
    std::copy_n(box.const_data_ptr<float>(), piece.count, shard.shard_params() + piece.offset);
  }
  if (shard.average() == nullptr) return;
  std::copy_n(shard.owned_params(), shard.layout().owned_size(), shard.average());
}

}  // namespace chiliad::train
