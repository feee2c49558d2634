#include "chiliad/base/error.h"
#include "chiliad/planner/detail/layer_tapes.h"

namespace chiliad::planner::detail {
namespace {

constexpr int64_t kTimeFeatures = 256;

struct Sizes {
  int64_t items, image, text, d, hidden, pixels, heads;
};

Value text_embedding(TapeOps& ops, const Sizes& n) {
  const int64_t rows = n.items * n.text;
  const Value tokens = ops.constant(2 * rows);
  const Value words = ops.tape().add(
      {.inputs = {tokens}, .result = ops.bytes(rows * n.d), .weight_gradient = ops.bytes(258 * n.d)});
  return ops.tape().add({.inputs = {words}, .result = ops.bytes(rows * n.d), .passes_gradient = true});
}

Value text_block(TapeOps& ops, const Sizes& n) {
  const int64_t tp = ops.setup().tp;
  const int64_t rows = n.items * n.text;
  const Value text = ops.read(rows * n.d);
  const Value first = ops.again(ops.layer_norm(text, rows, n.d));
  const Value qkv = ops.parts(ops.hold(ops.linear(first, rows, n.d, 3 * n.d / tp)), 3 * rows * n.d / tp);
  const Value mixed = ops.hold(ops.attention({qkv}, {rows, n.text, n.text, n.heads / tp, n.d / n.heads}));
  const Value x = ops.hold(ops.add(text, ops.summed_linear(mixed, rows, n.d / tp, n.d), rows * n.d));
  const Value second = ops.again(ops.layer_norm(x, rows, n.d));
  const Value inner = ops.hold(ops.linear(second, rows, n.d, n.hidden / tp));
  const Value active = ops.again(ops.activation(inner, rows * n.hidden / tp));
  return ops.add(x, ops.summed_linear(active, rows, n.hidden / tp, n.d), rows * n.d);
}

void image_embedding(TapeOps& ops, const Sizes& n) {
  const int64_t rows = n.items * n.text;
  const int64_t own = n.items * ops.own_rows(n.image);
  const int64_t row = n.items * n.d;
  const Value text_in = ops.read(rows * n.d);
  const Value text = ops.layer_norm(text_in, rows, n.d);
  const Value mean = ops.tape().add({.inputs = {text}, .result = ops.bytes(row)});
  const Value features = ops.tape().add({.inputs = {}, .result = ops.bytes(n.items * kTimeFeatures)});
  const Value first = ops.linear(features, n.items, kTimeFeatures, n.d);
  const Value time = ops.linear(ops.activation(first, row), n.items, n.d, n.d);
  const Value condition = ops.add(time, ops.linear(mean, n.items, n.d, n.d), row);
  const Value patches = ops.constant(own * n.pixels);
  const Value embedded = ops.linear(patches, own, n.pixels, n.d);
  const Value image =
      ops.tape().add({.inputs = {embedded}, .result = ops.bytes(own * n.d), .passes_gradient = true});
  const Value modulation = ops.linear(ops.activation(condition, row), n.items, n.d, 6 * n.d);
  for (const Value value : {image, text, condition, modulation}) ops.write(value);
}

/// A modulated norm of this rank's rows and what follows it.
Value after_norm(TapeOps& ops, Value x, Value modulation, const Sizes& n, int64_t out) {
  const int64_t own = n.items * ops.own_rows(n.image);
  const Value normed = ops.norm_modulate(x, modulation, own, n.d);
  if (!ops.is_shared()) ops.again(normed);
  return ops.gathered_linear(normed, n.image, n.d, out);
}

void diffusion_block(TapeOps& ops, const Sizes& n) {
  const int64_t tp = ops.setup().tp;
  const int64_t rows = n.items * n.image;
  const int64_t own = n.items * ops.own_rows(n.image) * n.d;
  const int64_t words = n.items * n.text;
  const int64_t part = n.d / tp;
  const Value image = ops.read(own);
  const Value text = ops.read(words * n.d);
  const Value given = ops.read(6 * n.items * n.d);
  const Value m =
      ops.tape().add({.inputs = {given}, .result = ops.bytes(6 * n.items * n.d), .passes_gradient = true});
  const Value qkv = ops.parts(ops.hold(after_norm(ops, image, m, n, 3 * part)), 3 * rows * part);
  const Value mixed = ops.hold(ops.attention({qkv}, {rows, n.image, n.image, n.heads / tp, n.d / n.heads}));
  Value x = ops.gated_residual(image, m, ops.scattered_linear(mixed, n.image, part, n.d, true), own);
  const Value kv = ops.parts(ops.hold(ops.linear(text, words, n.d, 2 * part)), 2 * words * part);
  const Value q = ops.hold(ops.gathered_linear(x, n.image, n.d, part));
  const Value seen = ops.hold(ops.attention({q, kv}, {rows, n.text, n.image, n.heads / tp, n.d / n.heads}));
  x = ops.hold(ops.add(x, ops.scattered_linear(seen, n.image, part, n.d, true), own));
  const Value inner = ops.hold(after_norm(ops, x, m, n, n.hidden / tp));
  const Value active = ops.again(ops.activation(inner, rows * n.hidden / tp));
  ops.write(ops.gated_residual(x, m, ops.scattered_linear(active, n.image, n.hidden / tp, n.d, true), own));
}

void image_head(TapeOps& ops, const Sizes& n) {
  const int64_t own = n.items * ops.own_rows(n.image);
  const Value image = ops.read(own * n.d);
  const Value condition = ops.read(n.items * n.d);
  const Value m = ops.tape().add({.inputs = {condition}, .result = ops.bytes(2 * n.items * n.d)});
  ops.write(ops.linear(ops.norm_modulate(image, m, own, n.d), own, n.d, n.pixels));
}

}  // namespace

Tape pixel_dit_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  TapeOps ops(setup);
  const auto& shape = setup.shape;
  const Sizes sizes{shape.items,  shape.image_tokens, shape.text_tokens, layer.width,
                    layer.hidden, layer.pixels,       layer.heads};
  switch (layer.kind) {
    case spec::LayerKind::kTextEmbedding:
      ops.write(text_embedding(ops, sizes));
      break;
    case spec::LayerKind::kTextBlock:
      ops.write(text_block(ops, sizes));
      break;
    case spec::LayerKind::kImageEmbedding:
      image_embedding(ops, sizes);
      break;
    case spec::LayerKind::kDiffusionBlock:
      diffusion_block(ops, sizes);
      break;
    case spec::LayerKind::kImageHead:
      image_head(ops, sizes);
      break;
    default:
      throw InternalError(layer.name, "layer kind without a tape in this family");
  }
  return ops.tape();
}

}  // namespace chiliad::planner::detail
