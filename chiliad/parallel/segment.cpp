#include "chiliad/parallel/segment.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include "chiliad/ops/backward.h"
#include "chiliad/ops/remake.h"

namespace chiliad::parallel {
namespace {

bool carries_gradient(const at::Tensor& tensor) {
  return tensor.is_floating_point() && tensor.requires_grad();
}

void add(layers::Carry& gradients, const std::string& name, const at::Tensor& value) {
  if (gradients.has(name) && gradients.get(name).defined()) {
    gradients.set(name, gradients.get(name) + value);
  } else {
    gradients.set(name, value);
  }
}

/// Where the layer works.
c10::Device device_of(const layers::Carry& carry) {
  for (const auto& [name, tensor] : carry.entries()) {
    if (tensor.defined() && !tensor.is_cpu()) return tensor.device();
  }
  return c10::kCPU;
}

Segment make_graph(const layers::Layer& layer, const layers::Carry& carry) {
  Segment segment;
  layers::Carry local = carry;
  for (const auto& name : layer.decl().reads) {
    at::Tensor leaf = carry.get(name).detach();
    leaf.set_requires_grad(true);
    local.set(name, leaf);
    segment.inputs.emplace_back(name, leaf);
  }
  layer.forward(local);
  for (const auto& name : layer.decl().writes) segment.outputs.emplace_back(name, local.get(name));
  return segment;
}

}  // namespace

Segment run_forward(const layers::Layer& layer, layers::Carry& carry, const ForwardOptions& options) {
  if (!options.needs_backward || options.recompute == spec::Recompute::kLayers) {
    Segment segment;
    if (options.needs_backward) {
      segment.layer = &layer;
      segment.carry = carry;
      segment.random = device::RandomState::now(device_of(carry));
    }
    const at::NoGradGuard no_grad;
    layer.forward(carry);
    return segment;
  }
  const ops::RemakeGuard remakes(options.recompute == spec::Recompute::kSelective);
  Segment segment = make_graph(layer, carry);
  for (const auto& [name, tensor] : segment.outputs) carry.set(name, tensor.detach());
  return segment;
}

void run_backward(Segment segment, layers::Carry& gradients) {
  if (segment.layer != nullptr) {
    const device::RandomStateGuard same_draws(segment.random);
    segment = make_graph(*segment.layer, segment.carry);
  }
  std::vector<at::Tensor> outputs;
  std::vector<at::Tensor> output_gradients;
  for (const auto& [name, tensor] : segment.outputs) {
    if (!carries_gradient(tensor) || !gradients.has(name) || !gradients.get(name).defined()) continue;
    outputs.push_back(tensor);
    output_gradients.push_back(gradients.get(name));
    gradients.set(name, {});
  }
  if (outputs.empty()) return;
  ops::backward(outputs, output_gradients);
  for (const auto& [name, leaf] : segment.inputs) {
    if (leaf.grad().defined()) add(gradients, name, leaf.grad());
  }
}

}  // namespace chiliad::parallel
