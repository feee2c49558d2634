#include <algorithm>
#include <cmath>
#include <string_view>

#include "chiliad/base/error.h"
#include "chiliad/planner/detail/layer_tapes.h"
#include "chiliad/spec/loss_chunk.h"

namespace chiliad::planner::detail {
namespace {

struct Sizes {
  int64_t tokens, own, d, hidden, query, key, heads, head_size, vocabulary;
  int64_t document;  // length of one, as the work model sees it
};

Sizes sizes_of(const spec::LayerDecl& layer, const TapeSetup& setup) {
  const auto& shape = setup.shape;
  const int64_t tokens = shape.items * shape.text_tokens;
  const double pairs =
      shape.attention_pairs > 0.0 ? shape.attention_pairs : static_cast<double>(tokens * shape.text_tokens);
  const auto document =
      static_cast<int64_t>(std::ceil(pairs / static_cast<double>(std::max<int64_t>(1, tokens))));
  const int64_t tp = setup.tp;
  return {tokens,
          (tokens + tp - 1) / tp,
          layer.width,
          layer.hidden / tp,
          layer.heads * layer.head_size / tp,
          layer.kv_heads * layer.head_size / tp,
          layer.heads / tp,
          layer.head_size,
          layer.vocabulary / tp,
          std::min(document, tokens)};
}

void token_embedding(TapeOps& ops, const spec::LayerDecl& layer, const Sizes& n) {
  const bool tied = layer.writes.size() > 1;
  const int64_t table = ops.bytes(n.vocabulary * n.d);
  // The table of a tied head is an entry too: the gradient from there is added to this one.
  const Value from = tied ? ops.tape().parameter(table) : ops.constant(2 * n.tokens);
  const Value words = ops.tape().add({.inputs = {from},
                                      .result = ops.bytes(n.tokens * n.d),
                                      .forward_work = ops.is_shared() ? ops.bytes(n.tokens * n.d) : 0,
                                      .weight_gradient = tied ? 0 : table});
  ops.write(ops.scatter_rows(words, n.tokens, n.d));
  if (tied) ops.write(from);
}

Value gathered_norm(TapeOps& ops, Value x, const Sizes& n) {
  const Value norm = ops.rms_norm(x, n.own, n.d);
  if (!ops.is_shared()) ops.again(norm, n.own * n.d);
  return ops.gather_rows(norm, n.tokens, n.d);
}

/// Of the documents one by one: gradients of their parts, then of all.
Value attention(TapeOps& ops, Value q, Value k, Value v, const Sizes& n) {
  const bool one = n.document == n.tokens;
  if (!one) {
    q = ops.parts(q, n.tokens * n.query);
    k = ops.parts(k, n.tokens * n.key);
    v = ops.parts(v, n.tokens * n.key);
  }
  // Keys and values are seen by all query heads of their group, a document at a time.
  const int64_t repeated = ops.bytes(n.document * (n.query - n.key));
  const Value mixed = ops.tape().add({.inputs = {q, k, v},
                                      .result = ops.bytes(n.tokens * n.query),
                                      .saved = {q, k, v},
                                      .saves_result = true,
                                      .kept = n.tokens * n.heads * 4,
                                      .backward_work = n.query == n.key ? 0 : 2 * repeated});
  if (one) return mixed;
  return ops.again(
      ops.tape().add({.inputs = {mixed}, .result = ops.bytes(n.tokens * n.query), .passes_gradient = true}));
}

bool has_param(const spec::LayerDecl& layer, std::string_view end) {
  return std::any_of(layer.params.begin(), layer.params.end(),
                     [&](const auto& param) { return param.name.ends_with(end); });
}

void decoder_block(TapeOps& ops, const spec::LayerDecl& layer, const Sizes& n) {
  const bool attention_bias = has_param(layer, "o_proj.bias");
  const bool mlp_bias = has_param(layer, "down_proj.bias");
  const Value hidden = ops.read(n.own * n.d);
  const Value first = gathered_norm(ops, hidden, n);
  const Value q = ops.rotate(ops.linear(first, n.tokens, n.d, n.query), n.tokens * n.query);
  const Value k = ops.rotate(ops.linear(first, n.tokens, n.d, n.key), n.tokens * n.key);
  const Value v = ops.linear(first, n.tokens, n.d, n.key);
  const Value mixed = attention(ops, q, k, v, n);
  const Value x =
      ops.add(hidden, ops.scattered_linear(mixed, n.tokens, n.query, n.d, attention_bias), n.own * n.d);
  const Value second = gathered_norm(ops, x, n);
  const Value gate = ops.hold(ops.linear(second, n.tokens, n.d, n.hidden));
  const Value up = ops.hold(ops.linear(second, n.tokens, n.d, n.hidden));
  const Value inner = ops.again(ops.swiglu(gate, up, n.tokens * n.hidden));
  ops.write(ops.add(x, ops.scattered_linear(inner, n.tokens, n.hidden, n.d, mlp_bias), n.own * n.d));
}

/// The loss makes the gradients in forward, some tokens at a time, and keeps them.
void language_head(TapeOps& ops, const spec::LayerDecl& layer, const Sizes& n) {
  const bool tied = layer.reads.size() > 1;
  const Value hidden = ops.read(n.own * n.d);
  const Value norm = ops.gather_rows(ops.rms_norm(hidden, n.own, n.d), n.tokens, n.d);
  const int64_t chunk = std::min(n.tokens, spec::loss_chunk(n.vocabulary));
  const int64_t table = 4 * n.vocabulary * n.d;
  const int64_t kept = 4 * n.tokens * n.d + (ops.setup().trained || tied ? table : 0);
  TapeOp loss{.inputs = {norm}, .result = 4, .kept = kept, .forward_work = 4 * chunk * (n.vocabulary + n.d)};
  if (tied) {
    loss.inputs.push_back(ops.read(n.vocabulary * n.d));
  } else if (ops.setup().trained) {
    loss.weight_gradient = table;
  }
  ops.write(ops.tape().add(loss));
  ops.write(ops.tape().add({.inputs = {}, .result = 4 * n.tokens}));
}

}  // namespace

Tape language_tape(const spec::LayerDecl& layer, const TapeSetup& setup) {
  TapeOps ops(setup);
  const Sizes sizes = sizes_of(layer, setup);
  switch (layer.kind) {
    case spec::LayerKind::kTokenEmbedding:
      token_embedding(ops, layer, sizes);
      break;
    case spec::LayerKind::kDecoderBlock:
      decoder_block(ops, layer, sizes);
      break;
    case spec::LayerKind::kLanguageHead:
      language_head(ops, layer, sizes);
      break;
    default:
      throw InternalError(layer.name, "layer kind without a tape in this family");
  }
  return ops.tape();
}

}  // namespace chiliad::planner::detail
