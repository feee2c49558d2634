#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>

namespace chiliad::objective {

/// A frozen network of the user's whose features of two pictures are compared: a TorchScript file
/// (torch.jit.save) from [B, 3, H, W] fp32 in -1..1 to a tensor [B, ...] or a list or tuple of them.
/// Thread-safe after loading.   Source of the loss: Johnson et al., perceptual losses.
class FeatureNetwork {
 public:
  /// Throws InvalidInput naming objective.perceptual where the file cannot be loaded.
  explicit FeatureNetwork(const std::string& path);
  ~FeatureNetwork();
  FeatureNetwork(const FeatureNetwork&) = delete;
  FeatureNetwork& operator=(const FeatureNetwork&) = delete;

  /// Mean squared difference of each feature map, summed over the maps, [B]; carries gradients to
  /// `reconstruction`. Throws InvalidInput where the network does not return what it must.
  [[nodiscard]] at::Tensor losses(const at::Tensor& reconstruction, const at::Tensor& pixels) const;

 private:
  struct Network;
  std::unique_ptr<Network> network_;
  std::string path_;
};

}  // namespace chiliad::objective
