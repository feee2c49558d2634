#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "chiliad/layers/layer.h"
#include "chiliad/spec/options/autoencoder.h"

namespace chiliad::model::autoencoder {

/// What the layers of an autoencoder are made of. Parameters are asked for by their full names, less
/// ".weight" and ".bias". x: [B, C, H, W].   Source: diffusers, AutoencoderKL.
class ConvolutionLayer : public layers::Layer {
 public:
  ConvolutionLayer(const spec::LayerDecl& decl, const spec::AutoencoderOptions& options)
      : Layer(decl), norm_groups_(options.norm_groups), layers_per_stage_(options.layers_per_stage) {}

 protected:
  [[nodiscard]] bool has(const std::string& name) const;
  [[nodiscard]] const at::Tensor& weight(const std::string& name) const { return find(name + ".weight"); }
  [[nodiscard]] const at::Tensor& bias(const std::string& name) const { return find(name + ".bias"); }

  /// "hidden", which leaves the carry where no graph is built: its memory goes when the layer is through with
  /// it.
  [[nodiscard]] static at::Tensor take_hidden(layers::Carry& carry);
  /// Keeps height and width.
  [[nodiscard]] at::Tensor convolve(const std::string& name, const at::Tensor& x) const;
  /// convolve(convolution, silu(norm(x)))
  [[nodiscard]] at::Tensor norm_convolve(const std::string& norm, const std::string& convolution,
                                         const at::Tensor& x) const;
  /// Halves height and width; the zeros are at the right and the bottom alone.
  [[nodiscard]] at::Tensor downsample(const std::string& name, const at::Tensor& x) const;
  /// Doubles height and width: each value four times, then a convolution.
  [[nodiscard]] at::Tensor upsample(const std::string& name, const at::Tensor& x) const;
  [[nodiscard]] at::Tensor residual_block(const std::string& name, at::Tensor x) const;
  /// One head over all positions.
  [[nodiscard]] at::Tensor attention_block(const std::string& name, const at::Tensor& x) const;
  /// Residual block, attention where there is one, residual block.
  [[nodiscard]] at::Tensor middle(const std::string& name, at::Tensor x) const;

  [[nodiscard]] int64_t layers_per_stage() const { return layers_per_stage_; }

 private:
  [[nodiscard]] const at::Tensor& find(const std::string& name) const;

  int64_t norm_groups_;
  int64_t layers_per_stage_;
};

}  // namespace chiliad::model::autoencoder
