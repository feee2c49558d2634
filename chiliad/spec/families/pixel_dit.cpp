#include "chiliad/spec/families/families.h"

#include <fmt/core.h>

namespace chiliad::spec::families {
namespace {

constexpr int64_t kVocabulary = 258;    // bytes, padding, null caption (text/byte_tokenizer.h)
constexpr int64_t kTimeFeatures = 256;  // sin-cos features of the time

ParamDecl matrix(const std::string& name, int64_t rows, int64_t columns, Init init = Init::kXavierUniform) {
  return {name + ".weight", Shape{rows, columns}, init, true};
}

ParamDecl vector(const std::string& name, int64_t size, Init init = Init::kZero) {
  return {name, Shape{size}, init, false};
}

void add_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out,
                Init init = Init::kXavierUniform) {
  layer.params.push_back(matrix(layer.name + "." + name, out, in, init));
  layer.params.push_back(vector(layer.name + "." + name + ".bias", out));
}

/// A linear layer that tensor parallelism cuts by its outputs (`parts` fused tensors, each by itself).
void add_row_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, int64_t parts = 1) {
  add_linear(layer, name, in, out);
  for (auto param = layer.params.end() - 2; param != layer.params.end(); ++param) {
    param->split = Split::kRows;
    param->parts = parts;
  }
}

/// One that it cuts by its inputs: the bias is whole, and added once.
void add_column_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out,
                       Init init = Init::kXavierUniform) {
  add_linear(layer, name, in, out, init);
  layer.params[layer.params.size() - 2].split = Split::kColumns;
}

void add_norm(LayerDecl& layer, const std::string& name, int64_t size) {
  layer.params.push_back(vector(layer.name + "." + name + ".weight", size, Init::kOne));
  layer.params.push_back(vector(layer.name + "." + name + ".bias", size));
}

LayerDecl base_layer(LayerKind kind, const std::string& name, const std::string& component,
                     const ModelOptions& options) {
  LayerDecl layer;
  layer.kind = kind;
  layer.name = name;
  layer.component = component;
  layer.width = options.width;
  layer.hidden = options.width * options.mlp_ratio;
  layer.heads = layer.kv_heads = options.heads;
  layer.head_size = options.width / options.heads;
  layer.pixels = 3 * options.patch * options.patch;
  return layer;
}

LayerDecl text_embedding(const ModelOptions& options) {
  LayerDecl layer = base_layer(LayerKind::kTextEmbedding, "text.embedding", "text_encoder", options);
  layer.params.push_back(matrix("text.embedding", kVocabulary, options.width, Init::kNormalUnit));
  layer.params.back().decay = false;
  layer.writes = {"text"};
  return layer;
}

LayerDecl text_block(const ModelOptions& options, int64_t index) {
  LayerDecl layer =
      base_layer(LayerKind::kTextBlock, fmt::format("text.blocks.{}", index), "text_encoder", options);
  add_norm(layer, "norm1", options.width);
  add_row_linear(layer, "attn.qkv", options.width, 3 * options.width, 3);
  add_column_linear(layer, "attn.proj", options.width, options.width);
  add_norm(layer, "norm2", options.width);
  add_row_linear(layer, "mlp.fc1", options.width, layer.hidden);
  add_column_linear(layer, "mlp.fc2", layer.hidden, options.width);
  layer.reads = {"text"};
  layer.writes = {"text"};
  return layer;
}

LayerDecl image_embedding(const ModelOptions& options) {
  LayerDecl layer = base_layer(LayerKind::kImageEmbedding, "embed", "backbone", options);
  add_norm(layer, "text_norm", options.width);
  add_linear(layer, "patch", layer.pixels, options.width);
  add_linear(layer, "time.fc1", kTimeFeatures, options.width, Init::kNormal002);
  add_linear(layer, "time.fc2", options.width, options.width, Init::kNormal002);
  add_linear(layer, "caption", options.width, options.width);
  add_linear(layer, "modulation", options.width, 6 * options.width, Init::kZero);
  layer.reads = {"text"};
  layer.writes = {"image", "text", "condition", "modulation"};
  return layer;
}

LayerDecl diffusion_block(const ModelOptions& options, int64_t index) {
  LayerDecl layer =
      base_layer(LayerKind::kDiffusionBlock, fmt::format("blocks.{}", index), "backbone", options);
  layer.params.push_back(
      {layer.name + ".scale_shift_table", Shape{6, options.width}, Init::kNormal002, false});
  add_row_linear(layer, "attn.qkv", options.width, 3 * options.width, 3);
  add_column_linear(layer, "attn.proj", options.width, options.width);
  add_row_linear(layer, "cross.q", options.width, options.width);
  add_row_linear(layer, "cross.kv", options.width, 2 * options.width, 2);
  add_column_linear(layer, "cross.proj", options.width, options.width, Init::kZero);
  add_row_linear(layer, "mlp.fc1", options.width, layer.hidden);
  add_column_linear(layer, "mlp.fc2", layer.hidden, options.width);
  layer.reads = {"image", "text", "modulation"};
  layer.writes = {"image"};
  return layer;
}

LayerDecl image_head(const ModelOptions& options) {
  LayerDecl layer = base_layer(LayerKind::kImageHead, "head", "head", options);
  layer.params.push_back({"head.scale_shift_table", Shape{2, options.width}, Init::kNormal002, false});
  add_linear(layer, "proj", options.width, layer.pixels, Init::kZero);
  layer.reads = {"image", "condition"};
  layer.writes = {"prediction"};
  return layer;
}

}  // namespace

Work pixel_dit_work(const LayerDecl& layer, const BatchShape& shape) {
  const auto b = static_cast<double>(shape.items);
  const double image = b * static_cast<double>(shape.image_tokens);
  const double text = b * static_cast<double>(shape.text_tokens);
  const auto d = static_cast<double>(layer.width);
  const auto f = static_cast<double>(layer.hidden);
  switch (layer.kind) {
    case LayerKind::kTextEmbedding:
      return {0.0, 0.0, text * d, 3.0};
    case LayerKind::kTextBlock:
      return {linear_flops(text, d, 4 * d) + linear_flops(text, d, 2 * f),
              4.0 * text * static_cast<double>(shape.text_tokens) * d, text * (10 * d + 3 * f), 14.0};
    case LayerKind::kImageEmbedding:
      return {linear_flops(image, static_cast<double>(layer.pixels), d) +
                  linear_flops(b, kTimeFeatures + 8 * d, d),
              0.0, image * (2 * d + 2 * static_cast<double>(layer.pixels)) + text * 3 * d, 22.0};
    case LayerKind::kDiffusionBlock:
      return {linear_flops(image, d, 6 * d) + linear_flops(text, d, 2 * d) + linear_flops(image, d, 2 * f),
              4.0 * image * static_cast<double>(shape.image_tokens + shape.text_tokens) * d,
              image * (18 * d + 3 * f) + text * 2 * d, 32.0};
    case LayerKind::kImageHead:
      return {linear_flops(image, d, static_cast<double>(layer.pixels)), 0.0,
              image * (4 * d + 2 * static_cast<double>(layer.pixels)), 8.0};
    default:
      return {};
  }
}

LayerTable pixel_dit_table(const ModelOptions& options) {
  LayerTable table;
  table.layers.push_back(text_embedding(options));
  for (int64_t i = 0; i < options.text_layers; ++i) table.layers.push_back(text_block(options, i));
  table.layers.push_back(image_embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(diffusion_block(options, i));
  table.layers.push_back(image_head(options));
  return table;
}

}  // namespace chiliad::spec::families
