#include <fmt/core.h>

#include "chiliad/spec/families/families.h"

namespace chiliad::spec::families {
namespace {

LayerDecl base_layer(LayerKind kind, const std::string& name, const std::string& component,
                     const ModelOptions& options) {
  LayerDecl layer;
  layer.kind = kind;
  layer.name = name;
  layer.component = component;
  layer.width = options.width;
  layer.hidden = options.mlp_width;
  layer.heads = options.heads;
  layer.kv_heads = options.kv_heads == 0 ? options.heads : options.kv_heads;
  layer.head_size = options.head_size == 0 ? options.width / options.heads : options.head_size;
  layer.vocabulary = options.vocabulary;
  return layer;
}

ParamDecl norm_weight(const std::string& name, int64_t size) {
  return {name + ".weight", Shape{size}, Init::kOne, false};
}

ParamDecl vocabulary_table(const std::string& name, const ModelOptions& options) {
  return {name + ".weight", Shape{options.vocabulary, options.width}, Init::kNormal002, true, Split::kRows};
}

void add_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, Split split, bool bias) {
  const std::string full = layer.name + "." + name;
  layer.params.push_back({full + ".weight", Shape{out, in}, Init::kNormal002, true, split});
  if (!bias) return;
  layer.params.push_back({full + ".bias", Shape{out}, Init::kZero, false, split});
  if (split == Split::kColumns) layer.params.back().split = Split::kNone;
}

LayerDecl token_embedding(const ModelOptions& options) {
  LayerDecl layer = base_layer(LayerKind::kTokenEmbedding, "model.embed_tokens", "embedding", options);
  layer.params.push_back(vocabulary_table(layer.name, options));
  layer.writes = {"hidden"};
  if (options.tied) layer.writes.emplace_back("embedding_weight");
  layer.lends_params = options.tied;
  return layer;
}

LayerDecl decoder_block(const ModelOptions& options, int64_t index) {
  LayerDecl layer =
      base_layer(LayerKind::kDecoderBlock, fmt::format("model.layers.{}", index), "backbone", options);
  const int64_t d = layer.width;
  const int64_t query = layer.heads * layer.head_size;
  const int64_t key = layer.kv_heads * layer.head_size;
  const bool bias = options.attention_bias || options.family == "qwen2";
  layer.params.push_back(norm_weight(layer.name + ".input_layernorm", d));
  add_linear(layer, "self_attn.q_proj", d, query, Split::kRows, bias);
  add_linear(layer, "self_attn.k_proj", d, key, Split::kRows, bias);
  add_linear(layer, "self_attn.v_proj", d, key, Split::kRows, bias);
  add_linear(layer, "self_attn.o_proj", query, d, Split::kColumns, options.attention_bias);
  layer.params.push_back(norm_weight(layer.name + ".post_attention_layernorm", d));
  add_linear(layer, "mlp.gate_proj", d, layer.hidden, Split::kRows, options.mlp_bias);
  add_linear(layer, "mlp.up_proj", d, layer.hidden, Split::kRows, options.mlp_bias);
  add_linear(layer, "mlp.down_proj", layer.hidden, d, Split::kColumns, options.mlp_bias);
  layer.reads = {"hidden"};
  layer.writes = {"hidden"};
  return layer;
}

LayerDecl language_head(const ModelOptions& options) {
  LayerDecl layer = base_layer(LayerKind::kLanguageHead, "lm_head", "head", options);
  layer.params.push_back(norm_weight("model.norm", options.width));
  layer.reads = {"hidden"};
  if (options.tied) {
    layer.reads.emplace_back("embedding_weight");
  } else {
    layer.params.push_back(vocabulary_table(layer.name, options));
  }
  layer.writes = {"loss", "token_losses"};
  return layer;
}

/// Documents attend to themselves alone.
double attention_pairs(const BatchShape& shape) {
  if (shape.attention_pairs > 0.0) return shape.attention_pairs;
  const auto length = static_cast<double>(shape.text_tokens);
  return static_cast<double>(shape.items) * length * length;
}

}  // namespace

Work language_work(const LayerDecl& layer, const BatchShape& shape) {
  const double tokens = static_cast<double>(shape.items) * static_cast<double>(shape.text_tokens);
  const auto d = static_cast<double>(layer.width);
  const auto f = static_cast<double>(layer.hidden);
  const auto query = static_cast<double>(layer.heads * layer.head_size);
  const auto key = static_cast<double>(layer.kv_heads * layer.head_size);
  const auto vocabulary = static_cast<double>(layer.vocabulary);
  switch (layer.kind) {
    case LayerKind::kTokenEmbedding:
      return {0.0, 0.0, tokens * d, 2.0};
    case LayerKind::kDecoderBlock:
      return {linear_flops(tokens, d, 2 * query + 2 * key) + linear_flops(tokens, d, 3 * f),
              4.0 * attention_pairs(shape) * query, tokens * (8 * d + 6 * (query + key) + 3 * f), 44.0};
    case LayerKind::kLanguageHead:
      return {linear_flops(tokens, d, vocabulary), 0.0, tokens * (4 * d + 3 * vocabulary), 16.0};
    default:
      return {};
  }
}

LayerTable language_table(const ModelOptions& options) {
  LayerTable table;
  table.layers.push_back(token_embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(decoder_block(options, i));
  table.layers.push_back(language_head(options));
  return table;
}

}  // namespace chiliad::spec::families
