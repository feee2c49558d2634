#include "chiliad/spec/trained_work.h"

#include "chiliad/base/error.h"

namespace chiliad::spec {

Work trained_work(const LayerTable& table, const BatchShape& shape, const std::vector<bool>& trained) {
  CHILIAD_CHECK_EQ(trained.size(), table.layers.size());
  Work total;
  bool has_backward = false;
  for (size_t i = 0; i < trained.size(); ++i) {
    has_backward = has_backward || trained[i];
    const Work forward = table.layers[i].forward(shape);
    total += forward;
    if (!has_backward) continue;
    // Products with weights: one for the gradient of the inputs, one for that of the weights. Products
    // between activations have both gradients in either case.
    Work backward = forward.scaled(2.0);
    if (!trained[i]) backward.linear_flops = forward.linear_flops;
    total += backward;
  }
  return total;
}

}  // namespace chiliad::spec
