#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/layer_tapes.h"

namespace chiliad::planner::detail {
namespace {

constexpr int64_t kStatistics = 2 * 4;  // mean and scale of a group, fp32
constexpr int64_t kMostGroups = 32;
constexpr int64_t kChannelBlock = 16;  // of oneDNN's convolutions

int64_t in_blocks(int64_t channels) {
  return (channels + kChannelBlock - 1) / kChannelBlock * kChannelBlock;
}

/// The operators of model/autoencoder on a tape; sizes come from the parameters' shapes.
class ConvolutionTape {
 public:
  ConvolutionTape(const spec::LayerDecl& layer, const TapeSetup& setup)
      : layer_(layer),
        ops_(setup),
        positions_(setup.shape.items * setup.shape.image_tokens * layer.positions) {}

  [[nodiscard]] TapeOps& ops() { return ops_; }
  /// Of the layer's input, over all items; the convolutions that halve or double sides change them.
  [[nodiscard]] int64_t positions() const { return positions_; }
  [[nodiscard]] bool has(const std::string& name) const { return find(name + ".weight") != nullptr; }
  [[nodiscard]] int64_t channels_in(const std::string& name) const {
    return find(name + ".weight")->shape[1];
  }
  [[nodiscard]] int64_t channels_out(const std::string& name) const {
    return find(name + ".weight")->shape[0];
  }

  /// input_positions: of x, where the convolution has a stride. beside: what the caller still holds.
  Value convolve(const std::string& name, Value x, std::vector<Value> beside = {},
                 int64_t input_positions = 0) {
    const spec::ParamDecl* kernel = find(name + ".weight");
    CHILIAD_CHECK(kernel != nullptr, "{}", name);
    const auto& shape = kernel->shape;
    const int64_t out = ops_.bytes(positions_ * shape[0]);
    const int64_t weights = ops_.bytes(shape.count());
    // The library works on blocks of channels and copies what goes in, and what comes out.
    // Pictures of three channels go in as they are.
    const int64_t channels = shape[1] <= 3 ? shape[1] : in_blocks(shape[1]);
    const int64_t blocked_in = ops_.bytes(std::max(positions_, input_positions) * channels);
    const int64_t blocked_out = ops_.bytes(positions_ * in_blocks(shape[0]));
    const int64_t blocked_weights =
        ops_.bytes(shape.count() / (shape[0] * shape[1]) * in_blocks(shape[0]) * in_blocks(shape[1]));
    return ops_.tape().add({.inputs = {x},
                            .result = out,
                            .saved = {x},
                            .forward_work = std::max(blocked_in + blocked_out - out, blocked_out) + weights,
                            .backward_work = blocked_in + blocked_out + (blocked_out > out ? out : 0) +
                                             blocked_weights - weights,
                            .weight_gradient = ops_.setup().trained ? weights : 0,
                            .beside = std::move(beside)});
  }

  /// Group norm and SiLU in one, which backward makes again.
  Value norm_convolve(const std::string& norm, const std::string& convolution, Value x) {
    const int64_t size = ops_.bytes(positions_ * find(norm + ".weight")->shape[0]);
    const Value normed = ops_.tape().add(
        {.inputs = {x}, .result = size, .saved = {x}, .kept = statistics(), .backward_work = 2 * size});
    return convolve(convolution, normed, {x});
  }

  Value residual_block(const std::string& name, Value x) {
    Value h = norm_convolve(name + ".norm1", name + ".conv1", x);
    if (has(name + ".conv_shortcut")) x = convolve(name + ".conv_shortcut", x);
    h = norm_convolve(name + ".norm2", name + ".conv2", h);
    return ops_.add(x, h, positions_ * channels_out(name + ".conv2"));
  }

  Value downsample(const std::string& name, Value x) {
    // One row and one column more; pictures are taken to be square.
    const int64_t items = ops_.setup().shape.items;
    const double side = std::sqrt(static_cast<double>(positions_) / static_cast<double>(items));
    const int64_t padded = positions_ + items * static_cast<int64_t>(2.0 * side + 1.0);
    const Value larger = ops_.tape().add({.inputs = {x}, .result = ops_.bytes(padded * channels_in(name))});
    positions_ /= 4;
    return convolve(name, larger, {x}, padded);
  }

  Value upsample(const std::string& name, Value x) {
    positions_ *= 4;
    const Value larger =
        ops_.tape().add({.inputs = {x}, .result = ops_.bytes(positions_ * channels_in(name))});
    return convolve(name, larger, {x});
  }

  Value attention_block(Value x) {
    const int64_t size = positions_ * layer_.width;
    const Value normed =
        ops_.tape().add({.inputs = {x}, .result = ops_.bytes(size), .saved = {x}, .kept = statistics()});
    const Value rows = ops_.tape().add({.inputs = {normed}, .result = ops_.bytes(size)});
    std::vector<Value> products;
    for (int i = 0; i < 3; ++i) products.push_back(ops_.linear(rows, positions_, layer_.width, layer_.width));
    const int64_t length = positions_ / ops_.setup().shape.items;
    const Value mixed = ops_.attention(products, {positions_, length, length, 1, layer_.width});
    const Value out = ops_.linear(mixed, positions_, layer_.width, layer_.width, {normed, rows});
    return ops_.add(x, out, size);
  }

  Value middle(const std::string& name, Value x) {
    x = residual_block(name + ".resnets.0", x);
    if (has(name + ".attentions.0.to_q")) x = attention_block(x);
    return residual_block(name + ".resnets.1", x);
  }

  /// The residual blocks of a stage.
  Value blocks(Value x) {
    for (int i = 0; has(fmt::format("{}.resnets.{}.conv1", layer_.name, i)); ++i)
      x = residual_block(fmt::format("{}.resnets.{}", layer_.name, i), x);
    return x;
  }

 private:
  [[nodiscard]] const spec::ParamDecl* find(const std::string& name) const {
    const auto found = std::find_if(layer_.params.begin(), layer_.params.end(),
                                    [&](const spec::ParamDecl& param) { return param.name == name; });
    return found == layer_.params.end() ? nullptr : &*found;
  }
  [[nodiscard]] int64_t statistics() const { return kStatistics * kMostGroups * ops_.setup().shape.items; }

  const spec::LayerDecl& layer_;
  TapeOps ops_;
  int64_t positions_;
};

/// Channels of what the layer reads as "hidden".
int64_t channels_before(const spec::LayerDecl& layer) {
  for (const auto& param : layer.params) {
    if (param.shape.rank() == 4) return param.shape[1];
  }
  throw InternalError(layer.name, "a layer without a convolution");
}

Value read_hidden(ConvolutionTape& on, const spec::LayerDecl& layer) {
  return on.ops().read(on.positions() * channels_before(layer));
}

void stage(ConvolutionTape& on, const spec::LayerDecl& layer) {
  Value x = on.blocks(read_hidden(on, layer));
  const std::string smaller = layer.name + ".downsamplers.0.conv";
  const std::string larger = layer.name + ".upsamplers.0.conv";
  if (on.has(smaller)) x = on.downsample(smaller, x);
  if (on.has(larger)) x = on.upsample(larger, x);
  on.ops().write(x);
}

void latent_head(ConvolutionTape& on, const spec::LayerDecl& layer) {
  const Value x = on.ops().hold(on.middle("encoder.mid_block", read_hidden(on, layer)));
  Value moments = on.norm_convolve("encoder.conv_norm_out", "encoder.conv_out", x);
  if (on.has("quant_conv")) moments = on.convolve("quant_conv", moments);
  const int64_t size = on.positions() * on.channels_out("encoder.conv_out") / 2;
  const Value mean = on.ops().tape().add({.inputs = {moments}, .gradient = on.ops().bytes(size)});
  on.ops().write_part(mean, 2 * size);
  on.ops().write(on.ops().activation(moments, size));
}

void latent_stem(ConvolutionTape& on) {
  const bool quant = on.has("post_quant_conv");
  const int64_t size = on.positions() * on.channels_in(quant ? "post_quant_conv" : "decoder.conv_in");
  const Value mean = on.ops().read(size);
  const Value logvar = on.ops().read(size);
  const Value spread = on.ops().tape().add({.inputs = {logvar},
                                            .result = on.ops().bytes(size),
                                            .saves_result = true,
                                            .forward_work = on.ops().bytes(size)});
  const Value noise = on.ops().tape().add({.inputs = {spread}, .result = on.ops().bytes(size)});
  Value x = on.ops().add(mean, noise, size);
  if (quant) x = on.convolve("post_quant_conv", x);
  on.ops().write(on.convolve("decoder.conv_in", x));
}

}  // namespace

Tape autoencoder_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  using spec::LayerKind;
  ConvolutionTape on(layer, setup);
  switch (layer.kind) {
    case LayerKind::kAutoencoderStem:
      on.ops().write(
          on.convolve("encoder.conv_in", on.ops().constant(on.positions() * channels_before(layer))));
      break;
    case LayerKind::kAutoencoderDownStage:
    case LayerKind::kAutoencoderUpStage:
      stage(on, layer);
      break;
    case LayerKind::kAutoencoderLatentHead:
      latent_head(on, layer);
      break;
    case LayerKind::kAutoencoderLatentStem:
      latent_stem(on);
      break;
    case LayerKind::kAutoencoderMiddle:
      on.ops().write(on.middle("decoder.mid_block", read_hidden(on, layer)));
      break;
    case LayerKind::kAutoencoderPixelHead:
      on.ops().write(on.norm_convolve("decoder.conv_norm_out", "decoder.conv_out",
                                      on.ops().read(on.positions() * layer.width)));
      break;
    default:
      throw InternalError(layer.name, "layer kind without a tape in this family");
  }
  return on.ops().tape();
}

}  // namespace chiliad::planner::detail
