#include "chiliad/ops/backward.h"

#include <torch/csrc/autograd/autograd.h>

namespace chiliad::ops {

void backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients,
              bool keep_graph) {
  torch::autograd::backward(outputs, gradients, keep_graph);
}

}  // namespace chiliad::ops
