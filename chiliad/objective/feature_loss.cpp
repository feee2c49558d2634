#include "chiliad/objective/feature_loss.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <fmt/core.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/serialization/import.h>

#include <vector>

#include "chiliad/base/error.h"

namespace chiliad::objective {
namespace {

constexpr const char* kPlace = "objective.perceptual";

/// The first line: what follows is a stack of the library's own.
std::string first_line(const char* text) {
  const std::string all = text;
  return all.substr(0, all.find('\n'));
}

std::vector<at::Tensor> tensors_of(const c10::IValue& value) {
  if (value.isTensor()) return {value.toTensor()};
  if (value.isTensorList()) return value.toTensorVector();
  std::vector<at::Tensor> tensors;
  if (!value.isTuple() && !value.isList()) return tensors;
  const auto parts = value.isTuple() ? value.toTupleRef().elements().vec() : value.toListRef().vec();
  for (const auto& part : parts) {
    if (!part.isTensor()) return {};
    tensors.push_back(part.toTensor());
  }
  return tensors;
}

}  // namespace

struct FeatureNetwork::Network {
  mutable torch::jit::Module module;

  [[nodiscard]] std::vector<at::Tensor> features(const at::Tensor& pictures, const std::string& path) const {
    try {
      auto made = tensors_of(module.forward({pictures}));
      if (!made.empty()) return made;
    } catch (const c10::Error& error) {
      throw InvalidInput(kPlace, fmt::format("{}: cannot take pictures of {}x{}: {}", path, pictures.size(3),
                                             pictures.size(2), first_line(error.what_without_backtrace())));
    }
    throw InvalidInput(kPlace, fmt::format("{}: expected a tensor or a list of them from its forward, got "
                                           "something else. Return features alone",
                                           path));
  }
};

FeatureNetwork::FeatureNetwork(const std::string& path) : path_(path) {
  try {
    network_ = std::make_unique<Network>(Network{torch::jit::load(path, at::kCPU)});
  } catch (const c10::Error& error) {
    throw InvalidInput(kPlace, fmt::format("{}: expected a TorchScript file as torch.jit.save writes it: {}",
                                           path, first_line(error.what_without_backtrace())));
  }
  network_->module.eval();
  for (const auto& param : network_->module.parameters()) param.set_requires_grad(false);
}

FeatureNetwork::~FeatureNetwork() = default;

at::Tensor FeatureNetwork::losses(const at::Tensor& reconstruction, const at::Tensor& pixels) const {
  const auto made = network_->features(reconstruction, path_);
  std::vector<at::Tensor> wanted;
  {
    const at::NoGradGuard no_grad;
    wanted = network_->features(pixels.detach(), path_);
  }
  at::Tensor sum = at::zeros({pixels.size(0)}, reconstruction.options());
  for (size_t i = 0; i < made.size(); ++i) {
    if (made[i].dim() < 1 || made[i].size(0) != pixels.size(0)) {
      throw InvalidInput(kPlace,
                         fmt::format("{}: expected features of {} pictures in the first dimension, got a "
                                     "tensor of {} dimensions. Keep the batch first",
                                     path_, pixels.size(0), made[i].dim()));
    }
    sum = sum + (made[i] - wanted[i]).square().flatten(1).mean(1);
  }
  return sum;
}

}  // namespace chiliad::objective
