#include <fmt/core.h>

#include "chiliad/spec/families/diffusion_layer.h"

namespace chiliad::spec::families {
namespace {

LayerDecl embedding(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kFluxEmbedding, "embedding", "embedding", options);
  add_linear(layer, "x_embedder", layer.pixels, layer.width, Rows::kImage);
  add_time_mlp(layer, "time_text_embed.timestep_embedder", layer.width);
  if (options.guidance) add_time_mlp(layer, "time_text_embed.guidance_embedder", layer.width);
  add_text_mlp(layer, "time_text_embed.text_embedder", options.pooled_channels, layer.width, Rows::kItem);
  add_linear(layer, "context_embedder", options.text_channels, layer.width, Rows::kText);
  layer.writes = {"image", "text", "condition"};
  return layer;
}

LayerDecl double_block(const DiffusionOptions& options, int64_t index) {
  LayerDecl layer = diffusion_layer(LayerKind::kFluxDoubleBlock, fmt::format("transformer_blocks.{}", index),
                                    "backbone", options);
  add_modulation(layer, layer.name + ".norm1.linear", 6);
  add_modulation(layer, layer.name + ".norm1_context.linear", 6);
  add_joint_attention(layer, layer.name + ".attn", true, true);
  add_feed_forward(layer, layer.name + ".ff", Rows::kImage);
  add_feed_forward(layer, layer.name + ".ff_context", Rows::kText);
  layer.reads = {"image", "text", "condition"};
  layer.writes = {"image", "text"};
  return layer;
}

LayerDecl single_block(const DiffusionOptions& options, int64_t index) {
  LayerDecl layer = diffusion_layer(LayerKind::kFluxSingleBlock,
                                    fmt::format("single_transformer_blocks.{}", index), "backbone", options);
  const int64_t d = layer.width;
  add_modulation(layer, layer.name + ".norm.linear", 3);
  for (const char* product : {".attn.to_q", ".attn.to_k", ".attn.to_v"})
    add_linear(layer, layer.name + product, d, d, Rows::kBoth);
  add_head_norm(layer, layer.name + ".attn.norm_q");
  add_head_norm(layer, layer.name + ".attn.norm_k");
  add_linear(layer, layer.name + ".proj_mlp", d, layer.hidden, Rows::kBoth);
  add_linear(layer, layer.name + ".proj_out", d + layer.hidden, d, Rows::kBoth);
  layer.reads = {"image", "text", "condition"};
  layer.writes = {"image", "text"};
  return layer;
}

LayerDecl head(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kFluxHead, "proj_out", "head", options);
  add_modulation(layer, "norm_out.linear", 2);
  add_prediction(layer, "proj_out", options);
  return layer;
}

}  // namespace

LayerTable flux_table(const DiffusionOptions& options) {
  LayerTable table;
  table.layers.push_back(embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(double_block(options, i));
  for (int64_t i = 0; i < options.single_depth; ++i) table.layers.push_back(single_block(options, i));
  table.layers.push_back(head(options));
  return table;
}

}  // namespace chiliad::spec::families
