#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "chiliad/device/random_state.h"
#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/parallel.h"

namespace chiliad::parallel {

/// One layer's forward for one slot, as its own piece of autograd graph: what it read (leaves) and wrote.
/// With recomputation the graph is made anew for the backward, from what the layer read.
struct Segment {
  std::vector<std::pair<std::string, at::Tensor>> inputs;
  std::vector<std::pair<std::string, at::Tensor>> outputs;
  const layers::Layer* layer = nullptr;  ///< with recomputation
  layers::Carry carry;                   ///< with recomputation: the carry that it read from
  device::RandomState random;  ///< with recomputation: before its forward, which draws the same again
};

struct ForwardOptions {
  bool needs_backward = true;  ///< else nothing is kept
  /// kLayers: keep the inputs alone, and run the forward again for the backward.
  spec::Recompute recompute = spec::Recompute::kNone;
};

/// Runs the layer on detached inputs and puts its outputs (detached) into `carry`.
[[nodiscard]] Segment run_forward(const layers::Layer& layer, layers::Carry& carry,
                                  const ForwardOptions& options = {});

/// Backward of the segment (with recomputation, its forward first): takes the gradients of its outputs from
/// `gradients`, adds those of its inputs to it, and adds those of the parameters to the parameters' gradient
/// buffers. Frees the graph.
void run_backward(Segment segment, layers::Carry& gradients);

}  // namespace chiliad::parallel
