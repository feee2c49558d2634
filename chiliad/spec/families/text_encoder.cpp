#include <fmt/core.h>

#include "chiliad/base/error.h"
#include "chiliad/spec/families/families.h"

namespace chiliad::spec::families {
namespace {

void check_positive(const char* key, int64_t value) {
  if (value > 0) return;
  throw InvalidInput("text encoder",
                     fmt::format("{}: expected a positive number, got {}. Take the config.json "
                                 "that belongs to the weights",
                                 key, value));
}

void check(const TextEncoderOptions& options) {
  check_positive("width", options.width);
  check_positive("depth", options.depth);
  check_positive("heads", options.heads);
  check_positive("head_size", options.head_size);
  check_positive("mlp_width", options.mlp_width);
  check_positive("vocabulary", options.vocabulary);
  if (options.family != "t5") {
    check_positive("positions", options.positions);
    if (options.heads * options.head_size != options.width) {
      throw InvalidInput("text encoder",
                         fmt::format("heads: expected a divisor of the width {}, got {}. Take the "
                                     "config.json that belongs to the weights",
                                     options.width, options.heads));
    }
    return;
  }
  if (options.buckets < 4 || options.buckets % 2 != 0 || options.max_distance <= options.buckets / 4) {
    throw InvalidInput("text encoder",
                       fmt::format("relative positions: expected an even number of buckets from 4 on and a "
                                   "distance above a quarter of it, got {} and {}. Take the config.json that "
                                   "belongs to the weights",
                                   options.buckets, options.max_distance));
  }
}

LayerDecl base_layer(LayerKind kind, const std::string& name, const TextEncoderOptions& options) {
  LayerDecl layer;
  layer.kind = kind;
  layer.name = name;
  layer.component = "text_encoder";
  layer.width = options.width;
  layer.hidden = options.mlp_width;
  layer.heads = layer.kv_heads = options.heads;
  layer.head_size = options.head_size;
  layer.vocabulary = options.vocabulary;
  layer.reads = {"hidden"};
  layer.writes = {"hidden"};
  return layer;
}

void add_table(LayerDecl& layer, const std::string& name, int64_t rows, int64_t columns) {
  layer.params.push_back({layer.name + "." + name + "weight", Shape{rows, columns}, Init::kNormal002, false});
}

void add_linear(LayerDecl& layer, const std::string& name, int64_t in, int64_t out, bool bias = true) {
  const std::string full = layer.name + "." + name;
  layer.params.push_back({full + ".weight", Shape{out, in}, Init::kNormal002, true});
  if (bias) layer.params.push_back({full + ".bias", Shape{out}, Init::kZero, false});
}

void add_norm(LayerDecl& layer, const std::string& name, bool bias = true) {
  const std::string full = layer.name + "." + name;
  layer.params.push_back({full + ".weight", Shape{layer.width}, Init::kOne, false});
  if (bias) layer.params.push_back({full + ".bias", Shape{layer.width}, Init::kZero, false});
}

LayerTable bert_table(const TextEncoderOptions& options) {
  LayerTable table;
  const int64_t d = options.width;
  LayerDecl embedding = base_layer(LayerKind::kBertEmbedding, "embeddings", options);
  embedding.reads.clear();
  add_table(embedding, "word_embeddings.", options.vocabulary, d);
  add_table(embedding, "position_embeddings.", options.positions, d);
  add_table(embedding, "token_type_embeddings.", options.token_types, d);
  add_norm(embedding, "LayerNorm");
  table.layers.push_back(std::move(embedding));
  for (int64_t i = 0; i < options.depth; ++i) {
    LayerDecl block = base_layer(LayerKind::kBertBlock, fmt::format("encoder.layer.{}", i), options);
    for (const char* name : {"query", "key", "value"})
      add_linear(block, fmt::format("attention.self.{}", name), d, d);
    add_linear(block, "attention.output.dense", d, d);
    add_norm(block, "attention.output.LayerNorm");
    add_linear(block, "intermediate.dense", d, options.mlp_width);
    add_linear(block, "output.dense", options.mlp_width, d);
    add_norm(block, "output.LayerNorm");
    table.layers.push_back(std::move(block));
  }
  if (options.pooler) {
    LayerDecl pooler = base_layer(LayerKind::kBertPooler, "pooler", options);
    add_linear(pooler, "dense", d, d);
    pooler.writes = {"pooled"};
    table.layers.push_back(std::move(pooler));
  }
  return table;
}

LayerTable clip_text_table(const TextEncoderOptions& options) {
  LayerTable table;
  const int64_t d = options.width;
  LayerDecl embedding = base_layer(LayerKind::kClipTextEmbedding, "text_model.embeddings", options);
  embedding.reads.clear();
  add_table(embedding, "token_embedding.", options.vocabulary, d);
  add_table(embedding, "position_embedding.", options.positions, d);
  table.layers.push_back(std::move(embedding));
  for (int64_t i = 0; i < options.depth; ++i) {
    LayerDecl block =
        base_layer(LayerKind::kClipTextBlock, fmt::format("text_model.encoder.layers.{}", i), options);
    add_norm(block, "layer_norm1");
    for (const char* name : {"q_proj", "k_proj", "v_proj", "out_proj"})
      add_linear(block, fmt::format("self_attn.{}", name), d, d);
    add_norm(block, "layer_norm2");
    add_linear(block, "mlp.fc1", d, options.mlp_width);
    add_linear(block, "mlp.fc2", options.mlp_width, d);
    table.layers.push_back(std::move(block));
  }
  LayerDecl head = base_layer(LayerKind::kClipTextHead, "text_model", options);
  add_norm(head, "final_layer_norm");
  if (options.projection > 0)
    head.params.push_back({"text_projection.weight", Shape{options.projection, d}, Init::kNormal002, true});
  head.writes = {"hidden", "pooled"};
  table.layers.push_back(std::move(head));
  return table;
}

LayerTable t5_table(const TextEncoderOptions& options) {
  LayerTable table;
  const int64_t d = options.width;
  const int64_t inner = options.heads * options.head_size;
  LayerDecl embedding = base_layer(LayerKind::kT5Embedding, "shared", options);
  embedding.reads.clear();
  add_table(embedding, "", options.vocabulary, d);
  table.layers.push_back(std::move(embedding));
  for (int64_t i = 0; i < options.depth; ++i) {
    LayerDecl block = base_layer(LayerKind::kT5Block, fmt::format("encoder.block.{}", i), options);
    add_norm(block, "layer.0.layer_norm", false);
    for (const char* name : {"q", "k", "v"})
      add_linear(block, fmt::format("layer.0.SelfAttention.{}", name), d, inner, false);
    add_linear(block, "layer.0.SelfAttention.o", inner, d, false);
    if (i == 0) {
      add_table(block, "layer.0.SelfAttention.relative_attention_bias.", options.buckets, options.heads);
      block.writes.emplace_back("position_bias");
    } else {
      block.reads.emplace_back("position_bias");
    }
    add_norm(block, "layer.1.layer_norm", false);
    if (options.gated) {
      add_linear(block, "layer.1.DenseReluDense.wi_0", d, options.mlp_width, false);
      add_linear(block, "layer.1.DenseReluDense.wi_1", d, options.mlp_width, false);
    } else {
      add_linear(block, "layer.1.DenseReluDense.wi", d, options.mlp_width, false);
    }
    add_linear(block, "layer.1.DenseReluDense.wo", options.mlp_width, d, false);
    table.layers.push_back(std::move(block));
  }
  LayerDecl norm = base_layer(LayerKind::kT5Norm, "encoder", options);
  add_norm(norm, "final_layer_norm", false);
  table.layers.push_back(std::move(norm));
  return table;
}

}  // namespace

Work text_encoder_work(const LayerDecl& layer, const BatchShape& shape) {
  const auto items = static_cast<double>(shape.items);
  const auto length = static_cast<double>(shape.text_tokens);
  const double tokens = items * length;
  const auto d = static_cast<double>(layer.width);
  const auto inner = static_cast<double>(layer.heads * layer.head_size);
  switch (layer.kind) {
    case LayerKind::kBertEmbedding:
    case LayerKind::kClipTextEmbedding:
    case LayerKind::kT5Embedding:
      return {0.0, 0.0, tokens * 4 * d, 5.0};
    case LayerKind::kBertBlock:
    case LayerKind::kClipTextBlock:
    case LayerKind::kT5Block: {
      double weights = 0.0;  // of the linear layers
      for (const ParamDecl& param : layer.params) {
        if (param.decay) weights += static_cast<double>(param.shape.count());
      }
      return {2.0 * tokens * weights, 4.0 * tokens * length * inner,
              tokens * (8 * d + 4 * inner + 3 * static_cast<double>(layer.hidden)), 20.0};
    }
    case LayerKind::kBertPooler:
      return {linear_flops(items, d, d), 0.0, items * 2 * d, 3.0};
    case LayerKind::kClipTextHead:
      return {layer.params.size() > 2 ? linear_flops(items, d, static_cast<double>(layer.params[2].shape[0]))
                                      : 0.0,
              0.0, tokens * 2 * d, 5.0};
    case LayerKind::kT5Norm:
      return {0.0, 0.0, tokens * 2 * d, 2.0};
    default:
      return {};
  }
}

LayerTable text_encoder_table(const TextEncoderOptions& options) {
  check(options);
  if (options.family == "bert") return bert_table(options);
  if (options.family == "clip_text") return clip_text_table(options);
  if (options.family == "t5") return t5_table(options);
  throw InvalidInput(
      "text encoder",
      fmt::format("family: expected bert, clip_text or t5, got '{}'. Choose one", options.family));
}

}  // namespace chiliad::spec::families
