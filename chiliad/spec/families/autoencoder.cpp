#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec::families {
namespace {

void require(bool holds, const char* key, const std::string& message) {
  if (!holds) throw InvalidInput(std::string("autoencoder.") + key, message);
}

void check(const AutoencoderOptions& options) {
  const auto& channels = options.stage_channels;
  require(!channels.empty() && channels.size() <= 8, "stage_channels",
          fmt::format("expected 1 to 8 stages, got {}. List the channels of each stage", channels.size()));
  require(options.norm_groups > 0, "norm_groups", "expected at least 1, got less. Usual is 32");
  for (const int64_t count : channels) {
    require(count > 0 && count % options.norm_groups == 0, "stage_channels",
            fmt::format("expected multiples of norm_groups = {}, got {}. Change one of them",
                        options.norm_groups, count));
  }
  for (const auto& [key, value] : {std::pair{"in_channels", options.in_channels},
                                   {"out_channels", options.out_channels},
                                   {"layers_per_stage", options.layers_per_stage},
                                   {"latent_channels", options.latent_channels}}) {
    require(value > 0, key, fmt::format("expected at least 1, got {}. Set it", value));
  }
}

LayerDecl base_layer(LayerKind kind, const std::string& name, const std::string& component, int64_t width,
                     int64_t positions) {
  LayerDecl layer;
  layer.kind = kind;
  layer.name = name;
  layer.component = component;
  layer.width = width;
  layer.positions = positions;
  layer.reads = {"hidden"};
  layer.writes = {"hidden"};
  return layer;
}

void add_norm(LayerDecl& layer, const std::string& name, int64_t channels) {
  layer.params.push_back({name + ".weight", Shape{channels}, Init::kOne, false});
  layer.params.push_back({name + ".bias", Shape{channels}, Init::kZero, false});
}

void add_convolution(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, int64_t side = 3) {
  layer.params.push_back({name + ".weight", Shape{out, in, side, side}, Init::kFanInUniform, true});
  layer.params.push_back({name + ".bias", Shape{out}, Init::kZero, false});
}

void add_linear(LayerDecl& layer, const std::string& name, int64_t channels) {
  layer.params.push_back({name + ".weight", Shape{channels, channels}, Init::kFanInUniform, true});
  layer.params.push_back({name + ".bias", Shape{channels}, Init::kZero, false});
}

void add_residual_block(LayerDecl& layer, const std::string& name, int64_t in, int64_t out) {
  add_norm(layer, name + ".norm1", in);
  add_convolution(layer, name + ".conv1", in, out);
  add_norm(layer, name + ".norm2", out);
  add_convolution(layer, name + ".conv2", out, out);
  if (in != out) add_convolution(layer, name + ".conv_shortcut", in, out, 1);
}

void add_middle(LayerDecl& layer, const std::string& name, int64_t channels, bool attention) {
  add_residual_block(layer, name + ".resnets.0", channels, channels);
  if (attention) {
    const std::string prefix = name + ".attentions.0";
    add_norm(layer, prefix + ".group_norm", channels);
    for (const char* product : {".to_q", ".to_k", ".to_v", ".to_out.0"})
      add_linear(layer, prefix + product, channels);
    layer.heads = layer.kv_heads = 1;
    layer.head_size = channels;
  }
  add_residual_block(layer, name + ".resnets.1", channels, channels);
}

LayerDecl encoder_stem(const AutoencoderOptions& options) {
  const int64_t width = options.stage_channels.front();
  LayerDecl layer = base_layer(LayerKind::kAutoencoderStem, "encoder.conv_in", "encoder", width,
                               options.factor() * options.factor());
  add_convolution(layer, layer.name, options.in_channels, width);
  layer.reads = {};
  return layer;
}

LayerDecl encoder_stage(const AutoencoderOptions& options, size_t index) {
  const auto& channels = options.stage_channels;
  const int64_t side = options.factor() >> index;
  LayerDecl layer = base_layer(LayerKind::kAutoencoderDownStage, fmt::format("encoder.down_blocks.{}", index),
                               "encoder", channels[index], side * side);
  int64_t in = channels[index == 0 ? 0 : index - 1];
  for (int64_t i = 0; i < options.layers_per_stage; ++i, in = layer.width)
    add_residual_block(layer, fmt::format("{}.resnets.{}", layer.name, i), in, layer.width);
  if (index + 1 < channels.size())
    add_convolution(layer, layer.name + ".downsamplers.0.conv", layer.width, layer.width);
  return layer;
}

LayerDecl encoder_head(const AutoencoderOptions& options) {
  const int64_t width = options.stage_channels.back();
  const int64_t moments = 2 * options.latent_channels;
  LayerDecl layer = base_layer(LayerKind::kAutoencoderLatentHead, "encoder.mid_block", "encoder", width, 1);
  add_middle(layer, layer.name, width, options.middle_attention);
  add_norm(layer, "encoder.conv_norm_out", width);
  add_convolution(layer, "encoder.conv_out", width, moments);
  if (options.quant_conv) add_convolution(layer, "quant_conv", moments, moments, 1);
  layer.writes = {"mean", "logvar"};
  return layer;
}

LayerDecl decoder_stem(const AutoencoderOptions& options) {
  const int64_t width = options.stage_channels.back();
  const int64_t latent = options.latent_channels;
  LayerDecl layer = base_layer(LayerKind::kAutoencoderLatentStem, "decoder.conv_in", "decoder", width, 1);
  if (options.post_quant_conv) add_convolution(layer, "post_quant_conv", latent, latent, 1);
  add_convolution(layer, layer.name, latent, width);
  layer.reads = {"mean", "logvar"};
  return layer;
}

LayerDecl decoder_middle(const AutoencoderOptions& options) {
  const int64_t width = options.stage_channels.back();
  LayerDecl layer = base_layer(LayerKind::kAutoencoderMiddle, "decoder.mid_block", "decoder", width, 1);
  add_middle(layer, layer.name, width, options.middle_attention);
  return layer;
}

LayerDecl decoder_stage(const AutoencoderOptions& options, size_t index) {
  const std::vector<int64_t> channels(options.stage_channels.rbegin(), options.stage_channels.rend());
  const int64_t side = int64_t{1} << index;
  LayerDecl layer = base_layer(LayerKind::kAutoencoderUpStage, fmt::format("decoder.up_blocks.{}", index),
                               "decoder", channels[index], side * side);
  int64_t in = channels[index == 0 ? 0 : index - 1];
  for (int64_t i = 0; i <= options.layers_per_stage; ++i, in = layer.width)
    add_residual_block(layer, fmt::format("{}.resnets.{}", layer.name, i), in, layer.width);
  if (index + 1 < channels.size())
    add_convolution(layer, layer.name + ".upsamplers.0.conv", layer.width, layer.width);
  return layer;
}

LayerDecl decoder_head(const AutoencoderOptions& options) {
  const int64_t width = options.stage_channels.front();
  LayerDecl layer = base_layer(LayerKind::kAutoencoderPixelHead, "decoder.conv_out", "decoder", width,
                               options.factor() * options.factor());
  add_norm(layer, "decoder.conv_norm_out", width);
  add_convolution(layer, layer.name, width, options.out_channels);
  layer.writes = {"reconstruction"};
  return layer;
}

/// Positions that a convolution's output has, for one that its layer's input has.
double output_positions(const std::string& name) {
  if (name.find(".downsamplers.") != std::string::npos) return 0.25;
  if (name.find(".upsamplers.") != std::string::npos) return 4.0;
  return 1.0;
}

}  // namespace

LayerTable autoencoder_table(const AutoencoderOptions& options) {
  check(options);
  const size_t stages = options.stage_channels.size();
  LayerTable table;
  table.layers.push_back(encoder_stem(options));
  for (size_t i = 0; i < stages; ++i) table.layers.push_back(encoder_stage(options, i));
  table.layers.push_back(encoder_head(options));
  table.layers.push_back(decoder_stem(options));
  table.layers.push_back(decoder_middle(options));
  for (size_t i = 0; i < stages; ++i) table.layers.push_back(decoder_stage(options, i));
  table.layers.push_back(decoder_head(options));
  return table;
}

Work autoencoder_work(const LayerDecl& layer, const BatchShape& shape) {
  const auto tokens = static_cast<double>(shape.image_tokens);
  const auto items = static_cast<double>(shape.items);
  const double positions = items * tokens * static_cast<double>(layer.positions);
  Work work;
  for (const auto& param : layer.params) {
    if (param.shape.rank() < 2) continue;
    const double rows = positions * output_positions(param.name);
    const auto weights = static_cast<double>(param.shape.count());
    work.linear_flops += linear_flops(rows, weights, 1.0);
    // Its output, and the norm, the activation or the sum before or behind it.
    work.elementwise += rows * 4.0 * static_cast<double>(param.shape[0]);
    work.launches += 4.0;
  }
  work.attention_flops = 4.0 * items * tokens * tokens * static_cast<double>(layer.heads * layer.head_size);
  return work;
}

}  // namespace chiliad::spec::families
