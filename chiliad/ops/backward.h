#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace chiliad::ops {

/// Adds the gradients of `outputs` to the leaves they come from: torch's own backward, without its headers,
/// which cost every file that includes them eight seconds. `gradients`: those of the outputs, of their
/// shapes; none for scalars. `keep_graph`: the same graph may be walked again. Throws what the operators
/// throw.
void backward(const std::vector<at::Tensor>& outputs, const std::vector<at::Tensor>& gradients = {},
              bool keep_graph = false);

}  // namespace chiliad::ops
