#include <fmt/core.h>

#include "chiliad/spec/families/diffusion_layer.h"

namespace chiliad::spec::families {
namespace {

/// The one embedder of times and classes; files repeat it in every block, and here it has the first one's
/// keys.
LayerDecl embedding(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kDitEmbedding, "embedding", "embedding", options);
  const std::string shared = "transformer_blocks.0.norm1.emb.";
  add_patch_projection(layer, "pos_embed.proj", options);
  add_time_mlp(layer, shared + "timestep_embedder", layer.width);
  layer.params.push_back({shared + "class_embedder.embedding_table.weight",
                          Shape{options.classes + 1, layer.width}, Init::kNormal002, false});
  layer.writes = {"image", "condition"};
  return layer;
}

LayerDecl block(const DiffusionOptions& options, int64_t index) {
  LayerDecl layer =
      diffusion_layer(LayerKind::kDitBlock, fmt::format("transformer_blocks.{}", index), "backbone", options);
  add_modulation(layer, layer.name + ".norm1.linear", 6);
  add_attention(layer, layer.name + ".attn1", Rows::kImage, Rows::kImage);
  add_feed_forward(layer, layer.name + ".ff", Rows::kImage);
  layer.reads = {"image", "condition"};
  layer.writes = {"image"};
  return layer;
}

LayerDecl head(const DiffusionOptions& options) {
  LayerDecl layer = diffusion_layer(LayerKind::kDitHead, "proj_out", "head", options);
  add_modulation(layer, "proj_out_1", 2);
  add_prediction(layer, "proj_out_2", options);
  return layer;
}

}  // namespace

LayerTable dit_table(const DiffusionOptions& options) {
  LayerTable table;
  table.layers.push_back(embedding(options));
  for (int64_t i = 0; i < options.depth; ++i) table.layers.push_back(block(options, i));
  table.layers.push_back(head(options));
  return table;
}

}  // namespace chiliad::spec::families
