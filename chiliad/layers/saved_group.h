#pragma once

#include <torch/csrc/autograd/custom_function.h>

#include <cstdint>

#include "chiliad/comm/group.h"
#include "chiliad/layers/tensor_parallel.h"

namespace chiliad::layers {

/// The group as a number: the saved data of an autograd function holds no pointers. It outlives the graph.
[[nodiscard]] inline int64_t saved_group(const TensorParallel& ranks) {
  return reinterpret_cast<int64_t>(ranks.group);
}
/// What a function's forward saved under "group".
[[nodiscard]] inline comm::Group& group_of(torch::autograd::AutogradContext* context) {
  return *reinterpret_cast<comm::Group*>(context->saved_data["group"].toInt());
}

}  // namespace chiliad::layers
