#include "chiliad/base/error.h"
#include "chiliad/planner/detail/diffusion_tape.h"

namespace chiliad::planner::detail {
namespace {

void dit_embedding(DiffusionTape& on) {
  const std::string shared = "transformer_blocks.0.norm1.emb.";
  const Value time = on.time_mlp(shared + "timestep_embedder", on.items());
  const Value labels = on.ops().constant(2 * on.items());
  const Value label = on.ops().tape().add(
      {.inputs = {labels},
       .result = on.ops().bytes(on.condition_size()),
       .weight_gradient = on.ops().bytes(on.count_of(shared + "class_embedder.embedding_table.weight"))});
  on.ops().write(on.embedded_image("pos_embed.proj"));
  on.ops().write(on.ops().add(time, label, on.condition_size()));
}

/// The first attention of a block, added to the image.
Value image_attention(DiffusionTape& on, Value image, Value m) {
  const auto own = on.image_stream("attn1", image, m);
  for (const Value value : {own.q, own.k, own.v}) on.ops().hold(value);
  const Value mixed = on.self_attention(own, on.image_rows());
  return on.ops().gated_residual(image, m, on.linear("attn1.to_out.0", mixed, on.image_rows()),
                                 on.image_size());
}

void dit_block(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value condition = on.ops().read(on.condition_size());
  const Value m = on.modulation("norm1.linear", condition);
  const Value x = on.ops().hold(image_attention(on, image, m));
  const Value out = on.feed_forward("ff", x, m, on.image_rows());
  on.ops().write(on.ops().gated_residual(x, m, out, on.image_size()));
}

void dit_head(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value condition = on.ops().read(on.condition_size());
  on.write_prediction("proj_out_2", image, on.modulation("proj_out_1", condition));
}

void pixart_embedding(DiffusionTape& on) {
  const std::string shared = "adaln_single.emb.";
  Value condition = on.time_mlp(shared + "timestep_embedder", on.items());
  if (on.has(shared + "resolution_embedder.linear_1.weight")) {
    const Value sides = on.time_mlp(shared + "resolution_embedder", 2 * on.items());
    const Value ratio = on.time_mlp(shared + "aspect_ratio_embedder", on.items());
    condition = on.ops().add(condition, on.joined({sides, ratio}, on.condition_size()), on.condition_size());
  }
  on.ops().write(on.embedded_image("pos_embed.proj"));
  const Value states = on.ops().constant(on.text_rows() * on.inputs_of("caption_projection.linear_1"));
  const Value inner = on.linear("caption_projection.linear_1", states, on.text_rows());
  const Value active = on.ops().again(on.ops().activation(inner, on.text_size()));
  on.ops().write(on.linear("caption_projection.linear_2", active, on.text_rows(), {inner}));
  on.ops().write(condition);
  on.ops().write(on.modulation("adaln_single.linear", condition));
}

/// The sum of a given modulation and the layer's own table.
Value with_table(DiffusionTape& on, Value given, int64_t parts) {
  return on.ops().tape().add({.inputs = {given},
                              .result = on.ops().bytes(parts * on.condition_size()),
                              .weight_gradient = on.ops().bytes(parts * on.decl().width),
                              .passes_gradient = true});
}

void pixart_block(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value text = on.ops().read(on.text_size());
  const Value m = with_table(on, on.ops().read(6 * on.condition_size()), 6);
  Value x = image_attention(on, image, m);
  const Value q = on.linear("attn2.to_q", x, on.image_rows());
  const Value k = on.linear("attn2.to_k", text, on.text_rows());
  const Value v = on.linear("attn2.to_v", text, on.text_rows());
  const Value seen = on.cross_attention(q, k, v);
  const Value caption = on.linear("attn2.to_out.0", seen, on.image_rows());
  x = on.ops().hold(on.ops().add(x, caption, on.image_size()));
  const Value out = on.feed_forward("ff", x, m, on.image_rows());
  on.ops().write(on.ops().gated_residual(x, m, out, on.image_size()));
}

void pixart_head(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value condition = on.ops().read(on.condition_size());
  on.write_prediction("proj_out", image, with_table(on, condition, 2));
}

}  // namespace

Tape dit_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  DiffusionTape on(layer, setup);
  if (layer.kind == spec::LayerKind::kDitEmbedding) dit_embedding(on);
  if (layer.kind == spec::LayerKind::kDitBlock) dit_block(on);
  if (layer.kind == spec::LayerKind::kDitHead) dit_head(on);
  return on.tape();
}

Tape pixart_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  DiffusionTape on(layer, setup);
  if (layer.kind == spec::LayerKind::kPixartEmbedding) pixart_embedding(on);
  if (layer.kind == spec::LayerKind::kPixartBlock) pixart_block(on);
  if (layer.kind == spec::LayerKind::kPixartHead) pixart_head(on);
  return on.tape();
}

}  // namespace chiliad::planner::detail
