#include <fmt/core.h>

#include <algorithm>

#include "chiliad/spec/families/diffusion_layer.h"

namespace chiliad::spec::families {
namespace {

/// A layer of its own, so that its component can be frozen: the reference never trains the table.
LayerDecl positions(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kSd3Positions, "pos_embed", "positions", options);
  ParamDecl table{"pos_embed.pos_embed", Shape{1, options.max_positions * options.max_positions, layer.width},
                  Init::kGridPositions, false};
  table.init_base = options.sample_size / options.patch;
  layer.params.push_back(std::move(table));
  layer.writes = {"image_positions"};
  return layer;
}

LayerDecl embedding(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kSd3Embedding, "embedding", "embedding", options);
  add_patch_projection(layer, "pos_embed.proj", options);
  add_time_mlp(layer, "time_text_embed.timestep_embedder", layer.width);
  add_text_mlp(layer, "time_text_embed.text_embedder", options.pooled_channels, layer.width, Rows::kItem);
  add_linear(layer, "context_embedder", options.text_channels, layer.width, Rows::kText);
  layer.reads = {"image_positions"};
  layer.writes = {"image", "text", "condition"};
  return layer;
}

LayerDecl block(const DiffusionOptions& options, int64_t index) {
  const auto& dual_layers = options.dual_attention_layers;
  const bool dual = std::find(dual_layers.begin(), dual_layers.end(), index) != dual_layers.end();
  const bool last = index == options.depth - 1;
  LayerDecl layer = diffusion_layer(dual ? LayerKind::kSd3DualBlock : LayerKind::kSd3Block,
                                    fmt::format("transformer_blocks.{}", index), "backbone", options);
  add_modulation(layer, layer.name + ".norm1.linear", dual ? 9 : 6);
  add_modulation(layer, layer.name + ".norm1_context.linear", last ? 2 : 6);
  add_joint_attention(layer, layer.name + ".attn", options.qk_norm, !last);
  if (dual) {
    add_attention(layer, layer.name + ".attn2", Rows::kImage, Rows::kImage);
    if (options.qk_norm) {
      add_head_norm(layer, layer.name + ".attn2.norm_q");
      add_head_norm(layer, layer.name + ".attn2.norm_k");
    }
  }
  add_feed_forward(layer, layer.name + ".ff", Rows::kImage);
  if (!last) add_feed_forward(layer, layer.name + ".ff_context", Rows::kText);
  layer.reads = {"image", "text", "condition"};
  layer.writes = {"image"};
  if (!last) layer.writes.emplace_back("text");
  return layer;
}

LayerDecl head(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kSd3Head, "proj_out", "head", options);
  add_modulation(layer, "norm_out.linear", 2);
  add_prediction(layer, "proj_out", options);
  return layer;
}

}  // namespace

LayerTable sd3_table(const DiffusionOptions& options) {
  LayerTable table;
  table.layers.push_back(positions(options));
  table.layers.push_back(embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(block(options, i));
  table.layers.push_back(head(options));
  return table;
}

}  // namespace chiliad::spec::families
