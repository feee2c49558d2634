#include "chiliad/spec/layer_table.h"

#include <fmt/core.h>

#include "chiliad/base/error.h"

namespace chiliad::spec {
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
  add_linear(layer, "attn.qkv", options.width, 3 * options.width);
  add_linear(layer, "attn.proj", options.width, options.width);
  add_norm(layer, "norm2", options.width);
  add_linear(layer, "mlp.fc1", options.width, layer.hidden);
  add_linear(layer, "mlp.fc2", layer.hidden, options.width);
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
  add_linear(layer, "attn.qkv", options.width, 3 * options.width);
  add_linear(layer, "attn.proj", options.width, options.width);
  add_linear(layer, "cross.q", options.width, options.width);
  add_linear(layer, "cross.kv", options.width, 2 * options.width);
  add_linear(layer, "cross.proj", options.width, options.width, Init::kZero);
  add_linear(layer, "mlp.fc1", options.width, layer.hidden);
  add_linear(layer, "mlp.fc2", layer.hidden, options.width);
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

double linear(double rows, double in, double out) {
  return 2.0 * rows * in * out;
}

}  // namespace

Work& Work::operator+=(const Work& other) {
  linear_flops += other.linear_flops;
  attention_flops += other.attention_flops;
  elementwise += other.elementwise;
  launches += other.launches;
  return *this;
}

Work Work::scaled(double factor) const {
  return {linear_flops * factor, attention_flops * factor, elementwise * factor, launches * factor};
}

Work LayerDecl::forward(const BatchShape& shape) const {
  const auto b = static_cast<double>(shape.items);
  const double image = b * static_cast<double>(shape.image_tokens);
  const double text = b * static_cast<double>(shape.text_tokens);
  const auto d = static_cast<double>(width);
  const auto f = static_cast<double>(hidden);
  switch (kind) {
    case LayerKind::kTextEmbedding:
      return {0.0, 0.0, text * d, 3.0};
    case LayerKind::kTextBlock:
      return {linear(text, d, 4 * d) + linear(text, d, 2 * f),
              4.0 * text * static_cast<double>(shape.text_tokens) * d, text * (10 * d + 3 * f), 14.0};
    case LayerKind::kImageEmbedding:
      return {linear(image, static_cast<double>(pixels), d) + linear(b, kTimeFeatures + 8 * d, d), 0.0,
              image * (2 * d + 2 * static_cast<double>(pixels)) + text * 3 * d, 22.0};
    case LayerKind::kDiffusionBlock:
      return {linear(image, d, 6 * d) + linear(text, d, 2 * d) + linear(image, d, 2 * f),
              4.0 * image * static_cast<double>(shape.image_tokens + shape.text_tokens) * d,
              image * (18 * d + 3 * f) + text * 2 * d, 32.0};
    case LayerKind::kImageHead:
      return {linear(image, d, static_cast<double>(pixels)), 0.0,
              image * (4 * d + 2 * static_cast<double>(pixels)), 8.0};
  }
  return {};
}

int64_t LayerDecl::num_params() const {
  int64_t count = 0;
  for (const auto& param : params) count += param.shape.count();
  return count;
}

int64_t LayerTable::num_params() const {
  int64_t count = 0;
  for (const auto& layer : layers) count += layer.num_params();
  return count;
}

Work LayerTable::step_work(const BatchShape& shape) const {
  Work total;
  for (const auto& layer : layers) total += layer.forward(shape).scaled(3.0);
  return total;
}

LayerTable make_layer_table(const ModelOptions& options) {
  if (options.family != "pixel_dit") {
    throw InvalidInput("model.family", fmt::format("expected pixel_dit, got '{}'", options.family));
  }
  LayerTable table;
  table.layers.push_back(text_embedding(options));
  for (int64_t i = 0; i < options.text_layers; ++i) table.layers.push_back(text_block(options, i));
  table.layers.push_back(image_embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(diffusion_block(options, i));
  table.layers.push_back(image_head(options));
  return table;
}

}  // namespace chiliad::spec
