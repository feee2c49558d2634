#include "chiliad/model/autoencoder/build.h"

#include <ATen/ATen.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/model/autoencoder/layer.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::model::autoencoder {
namespace {

using layers::Carry;

constexpr double kLogvarMin = -30.0;
constexpr double kLogvarMax = 20.0;

/// fp32, or fp64 for fp64.
at::Tensor widened(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? x : x.to(at::kFloat);
}

class Stem final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    carry.set("hidden", convolve("encoder.conv_in", in_compute_type(carry.get("pixels"))));
  }
};

class DownStage final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    at::Tensor x = take_hidden(carry);
    for (int64_t i = 0; i < layers_per_stage(); ++i)
      x = residual_block(fmt::format("{}.resnets.{}", decl().name, i), std::move(x));
    const std::string smaller = decl().name + ".downsamplers.0.conv";
    carry.set("hidden", has(smaller) ? downsample(smaller, x) : x);
  }
};

class LatentHead final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    const at::Tensor x = middle("encoder.mid_block", take_hidden(carry));
    at::Tensor moments = norm_convolve("encoder.conv_norm_out", "encoder.conv_out", x);
    if (has("quant_conv")) moments = convolve("quant_conv", moments);
    const auto parts = widened(moments).chunk(2, 1);
    carry.set("mean", parts[0]);
    carry.set("logvar", parts[1].clamp(kLogvarMin, kLogvarMax));
  }
};

class LatentStem final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    at::Tensor x = in_compute_type(latents(carry));
    if (has("post_quant_conv")) x = convolve("post_quant_conv", x);
    carry.set("hidden", convolve("decoder.conv_in", x));
  }

 private:
  [[nodiscard]] static at::Tensor latents(const Carry& carry) {
    if (carry.has("latents")) return carry.get("latents");
    const at::Tensor& mean = carry.get("mean");
    if (!carry.has("noise")) return mean;
    return mean + (carry.get("logvar") * 0.5).exp() * carry.get("noise");
  }
};

class Middle final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    carry.set("hidden", middle("decoder.mid_block", take_hidden(carry)));
  }
};

class UpStage final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    at::Tensor x = take_hidden(carry);
    for (int64_t i = 0; i <= layers_per_stage(); ++i)
      x = residual_block(fmt::format("{}.resnets.{}", decl().name, i), std::move(x));
    const std::string larger = decl().name + ".upsamplers.0.conv";
    carry.set("hidden", has(larger) ? upsample(larger, x) : x);
  }
};

class PixelHead final : public ConvolutionLayer {
 public:
  using ConvolutionLayer::ConvolutionLayer;
  void forward(Carry& carry) const override {
    const at::Tensor pixels = norm_convolve("decoder.conv_norm_out", "decoder.conv_out", take_hidden(carry));
    carry.set("reconstruction", widened(pixels));
  }
};

std::unique_ptr<layers::Layer> make_layer(const spec::LayerDecl& decl,
                                          const spec::AutoencoderOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kAutoencoderStem:
      return std::make_unique<Stem>(decl, options);
    case spec::LayerKind::kAutoencoderDownStage:
      return std::make_unique<DownStage>(decl, options);
    case spec::LayerKind::kAutoencoderLatentHead:
      return std::make_unique<LatentHead>(decl, options);
    case spec::LayerKind::kAutoencoderLatentStem:
      return std::make_unique<LatentStem>(decl, options);
    case spec::LayerKind::kAutoencoderMiddle:
      return std::make_unique<Middle>(decl, options);
    case spec::LayerKind::kAutoencoderUpStage:
      return std::make_unique<UpStage>(decl, options);
    case spec::LayerKind::kAutoencoderPixelHead:
      return std::make_unique<PixelHead>(decl, options);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

}  // namespace

std::vector<std::unique_ptr<layers::Layer>> build_autoencoder(const spec::AutoencoderOptions& options) {
  std::vector<std::unique_ptr<layers::Layer>> built;
  for (const auto& decl : spec::families::autoencoder_table(options).layers)
    built.push_back(make_layer(decl, options));
  return built;
}

size_t num_encoder_layers(const spec::AutoencoderOptions& options) {
  return options.stage_channels.size() + 2;
}

}  // namespace chiliad::model::autoencoder
