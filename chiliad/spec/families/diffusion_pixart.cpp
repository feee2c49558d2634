#include <fmt/core.h>

#include "chiliad/spec/families/diffusion_layer.h"

namespace chiliad::spec::families {
namespace {

constexpr int64_t kConditions = 3;  // height, width and aspect ratio share the width

LayerDecl embedding(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kPixartEmbedding, "embedding", "embedding", options);
  const int64_t d = layer.width;
  add_patch_projection(layer, "pos_embed.proj", options);
  add_time_mlp(layer, "adaln_single.emb.timestep_embedder", d);
  if (options.size_conditions) {
    add_time_mlp(layer, "adaln_single.emb.resolution_embedder", d / kConditions, 2);
    add_time_mlp(layer, "adaln_single.emb.aspect_ratio_embedder", d / kConditions);
  }
  add_modulation(layer, "adaln_single.linear", 6);
  add_text_mlp(layer, "caption_projection", options.text_channels, d, Rows::kText);
  layer.writes = {"image", "text", "condition", "modulation"};
  return layer;
}

LayerDecl block(const DiffusionOptions& options, int64_t index) {
  LayerDecl layer = diffusion_layer(LayerKind::kPixartBlock, fmt::format("transformer_blocks.{}", index),
                                    "backbone", options);
  layer.params.push_back({layer.name + ".scale_shift_table", Shape{6, layer.width}, Init::kNormal002, false});
  add_attention(layer, layer.name + ".attn1", Rows::kImage, Rows::kImage);
  add_attention(layer, layer.name + ".attn2", Rows::kImage, Rows::kText);
  // Captions have no effect at first.
  (layer.params.end() - 2)->init = Init::kZero;
  add_feed_forward(layer, layer.name + ".ff", Rows::kImage);
  layer.reads = {"image", "text", "modulation"};
  layer.writes = {"image"};
  return layer;
}

LayerDecl head(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kPixartHead, "proj_out", "head", options);
  layer.params.push_back({"scale_shift_table", Shape{2, layer.width}, Init::kNormal002, false});
  add_prediction(layer, "proj_out", options);
  return layer;
}

}  // namespace

LayerTable pixart_table(const DiffusionOptions& options) {
  LayerTable table;
  table.layers.push_back(embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(block(options, i));
  table.layers.push_back(head(options));
  return table;
}

}  // namespace chiliad::spec::families
