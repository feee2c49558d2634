#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/diffusion_tape.h"

namespace chiliad::planner::detail {
namespace {

using Stream = DiffusionTape::Stream;

void sd3_positions(DiffusionTape& on) {
  // A piece of a square table: its rows, and then their columns. The pieces are taken to be square too.
  const int64_t d = on.decl().width;
  const int64_t tokens = on.ops().setup().shape.image_tokens;
  const double side = std::sqrt(static_cast<double>(on.decl().num_params() / d));
  const auto rows = static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(tokens)) * side));
  const Value table = on.ops().tape().parameter(on.ops().bytes(on.decl().num_params()));
  on.ops().write(on.ops().tape().add(
      {.inputs = {table}, .result = on.ops().bytes(tokens * d), .backward_work = on.ops().bytes(rows * d)}));
}

Value text_entry(DiffusionTape& on) {
  const Value states = on.ops().constant(on.text_rows() * on.inputs_of("context_embedder"));
  return on.linear("context_embedder", states, on.text_rows());
}

void sd3_embedding(DiffusionTape& on) {
  const int64_t size = on.ops().setup().shape.image_tokens * on.decl().width;
  const Value positions = on.ops().read(size);
  const Value image = on.embedded_image("pos_embed.proj", false);
  // Their gradient is the sum over items of the image's own.
  const Value shifted = on.ops().tape().add({.inputs = {positions}, .gradient = on.ops().bytes(size)});
  on.ops().write(on.ops().tape().add(
      {.inputs = {image, shifted}, .result = on.ops().bytes(on.image_size()), .passes_gradient = true}));
  on.ops().write(text_entry(on));
  const Value time = on.time_mlp("time_text_embed.timestep_embedder", on.items());
  on.ops().write(on.ops().add(time, on.pooled_mlp("time_text_embed.text_embedder"), on.condition_size()));
}

/// beside: streams that the two were made of.
Value joint_attention(DiffusionTape& on, const Stream& first, const Stream& second,
                      const std::vector<Stream>& beside = {}) {
  const int64_t size = on.image_size() + on.text_size();
  const Stream both{on.joined({first.q, second.q}, size), on.joined({first.k, second.k}, size),
                    on.joined({first.v, second.v}, size)};
  const auto& shape = on.ops().setup().shape;
  const int64_t length = shape.image_tokens + shape.text_tokens;
  std::vector<Value> held{first.q, first.k, first.v, second.q, second.k, second.v};
  for (const Stream& stream : beside) held.insert(held.end(), {stream.q, stream.k, stream.v});
  return on.ops().attention({both.q, both.k, both.v},
                            {on.items() * length, length, length, on.decl().heads, on.decl().head_size},
                            std::move(held));
}

void sd3_block(DiffusionTape& on) {
  const bool dual = on.decl().kind == spec::LayerKind::kSd3DualBlock;
  const bool last = on.decl().writes.size() == 1;
  const Value image = on.ops().read(on.image_size());
  const Value text = on.ops().read(on.text_size());
  const Value condition = on.ops().read(on.condition_size());
  const Value m = on.modulation("norm1.linear", condition);
  const Value c = on.modulation("norm1_context.linear", condition);
  const Stream own = on.image_stream("attn", image, m);
  const Value mixed = on.ops().hold(joint_attention(on, own, on.text_stream("attn", text, c)));
  const Value out = on.linear("attn.to_out.0", on.ops().parts(mixed, on.image_size()), on.image_rows());
  Value x = on.ops().gated_residual(image, m, out, on.image_size());
  if (dual) {
    const Value seen = on.self_attention(on.image_stream("attn2", image, m), on.image_rows());
    x = on.ops().gated_residual(x, m, on.linear("attn2.to_out.0", seen, on.image_rows()), on.image_size());
  }
  on.ops().hold(x);
  if (last) {
    on.ops().write(
        on.ops().gated_residual(x, m, on.feed_forward("ff", x, m, on.image_rows()), on.image_size()));
    return;
  }
  const Value told = on.linear("attn.to_add_out", on.ops().parts(mixed, on.text_size()), on.text_rows());
  const Value y = on.ops().gated_residual(text, c, told, on.text_size());
  const Value next =
      on.ops().gated_residual(y, c, on.feed_forward("ff_context", y, c, on.text_rows()), on.text_size());
  on.ops().hold(next);
  on.ops().write(
      on.ops().gated_residual(x, m, on.feed_forward("ff", x, m, on.image_rows()), on.image_size()));
  on.ops().write(next);
}

/// Of sd3 and flux.
void head(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value condition = on.ops().read(on.condition_size());
  // flux: the image is a part of what its last block made of both.
  const bool apart = on.decl().kind == spec::LayerKind::kFluxHead && on.items() > 1;
  on.write_prediction("proj_out", image, on.modulation("norm_out.linear", condition), apart);
}

void flux_embedding(DiffusionTape& on) {
  const Value patches =
      on.ops().tape().add({.inputs = {}, .result = on.ops().bytes(on.image_rows() * on.decl().pixels)});
  Value condition = on.time_mlp("time_text_embed.timestep_embedder", on.items());
  if (on.has("time_text_embed.guidance_embedder.linear_1.weight")) {
    const Value guidance = on.time_mlp("time_text_embed.guidance_embedder", on.items());
    condition = on.ops().add(condition, guidance, on.condition_size());
  }
  on.ops().write(on.linear("x_embedder", patches, on.image_rows()));
  on.ops().write(text_entry(on));
  const Value pooled = on.pooled_mlp("time_text_embed.text_embedder");
  on.ops().write(on.ops().add(condition, pooled, on.condition_size()));
}

/// Queries and keys turned.
Stream turned(DiffusionTape& on, const Stream& stream, int64_t size) {
  return {on.ops().rotate(stream.q, size), on.ops().rotate(stream.k, size), stream.v};
}

void flux_double_block(DiffusionTape& on) {
  const Value image = on.ops().read(on.image_size());
  const Value text = on.ops().read(on.text_size());
  const Value condition = on.ops().read(on.condition_size());
  const Value m = on.modulation("norm1.linear", condition);
  const Value c = on.modulation("norm1_context.linear", condition);
  const Stream words = on.text_stream("attn", text, c);
  const Stream turned_words = turned(on, words, on.text_size());
  const Stream own = on.image_stream("attn", image, m);
  const Stream turned_own = turned(on, own, on.image_size());
  const Value mixed = on.ops().hold(joint_attention(on, turned_words, turned_own, {words, own}));
  const Value out = on.linear("attn.to_out.0", on.ops().parts(mixed, on.image_size()), on.image_rows());
  const Value x = on.ops().hold(on.ops().gated_residual(image, m, out, on.image_size()));
  const Value told = on.linear("attn.to_add_out", on.ops().parts(mixed, on.text_size()), on.text_rows());
  const Value y = on.ops().hold(on.ops().gated_residual(text, c, told, on.text_size()));
  on.ops().write(
      on.ops().gated_residual(x, m, on.feed_forward("ff", x, m, on.image_rows()), on.image_size()));
  on.ops().write(
      on.ops().gated_residual(y, c, on.feed_forward("ff_context", y, c, on.text_rows()), on.text_size()));
}

void flux_single_block(DiffusionTape& on) {
  const int64_t rows = on.image_rows() + on.text_rows();
  const int64_t size = rows * on.decl().width;
  const int64_t inner_size = rows * on.decl().hidden;
  const Value image = on.ops().read(on.image_size());
  const Value text = on.ops().read(on.text_size());
  const Value m = on.modulation("norm.linear", on.ops().read(on.condition_size()));
  const Value x = on.ops().hold(on.joined({text, image}, size));
  const Value input = on.normed(x, m, rows);
  std::vector<Value> made;
  for (const char* name : {"attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"})
    made.push_back(on.ops().hold(on.linear(name, input, rows)));
  Stream own{on.norm_heads(made[0], rows), on.norm_heads(made[1], rows), made[2]};
  own = turned(on, own, size);
  for (const Value value : {own.q, own.k}) on.ops().hold(value);
  const Value mixed = on.ops().hold(on.self_attention(own, rows));
  const Value active = on.ops().activation(made[3], inner_size);
  const Value both = on.ops().again(on.joined({mixed, active}, size + inner_size), inner_size);
  const Value next = on.ops().gated_residual(x, m, on.ops().hold(on.linear("proj_out", both, rows)), size);
  on.ops().write_part(on.ops().parts(next, on.image_size()), on.image_size());
  on.ops().write_part(on.ops().parts(next, on.text_size()), on.text_size());
}

}  // namespace

Tape sd3_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  DiffusionTape on(layer, setup);
  if (layer.kind == spec::LayerKind::kSd3Positions) sd3_positions(on);
  if (layer.kind == spec::LayerKind::kSd3Embedding) sd3_embedding(on);
  if (layer.kind == spec::LayerKind::kSd3Block || layer.kind == spec::LayerKind::kSd3DualBlock) sd3_block(on);
  if (layer.kind == spec::LayerKind::kSd3Head) head(on);
  return on.tape();
}

Tape flux_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  DiffusionTape on(layer, setup);
  if (layer.kind == spec::LayerKind::kFluxEmbedding) flux_embedding(on);
  if (layer.kind == spec::LayerKind::kFluxDoubleBlock) flux_double_block(on);
  if (layer.kind == spec::LayerKind::kFluxSingleBlock) flux_single_block(on);
  if (layer.kind == spec::LayerKind::kFluxHead) head(on);
  return on.tape();
}

}  // namespace chiliad::planner::detail
