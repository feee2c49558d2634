#include "chiliad/model/diffusion/flux.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/ops/axis_rotary.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/remake.h"

namespace chiliad::model {
namespace {

using layers::Carry;

class FluxEmbedding final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    at::Tensor condition = time_mlp("time_text_embed.timestep_embedder", carry.get("time"));
    if (options().guidance)
      condition = condition + time_mlp("time_text_embed.guidance_embedder", carry.get("guidance") * 1000.0);
    carry.set("image", linear("x_embedder", patches_in(carry)));
    carry.set("text", linear("context_embedder", in_compute_type(carry.get("text_states"))));
    carry.set("condition", condition + pooled_mlp("time_text_embed.text_embedder", carry.get("pooled")));
  }
};

/// Queries and keys turned by the tables' rows from `first` on.
ops::Stream turned(const ops::Stream& stream, const Carry& carry, int64_t first) {
  const int64_t count = stream.q.size(1);
  const at::Tensor cos = carry.get("rope_cos").narrow(0, first, count);
  const at::Tensor sin = carry.get("rope_sin").narrow(0, first, count);
  return {ops::rotate_pairs(stream.q, cos, sin), ops::rotate_pairs(stream.k, cos, sin), stream.v};
}

class FluxDoubleBlock final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const at::Tensor& condition = carry.get("condition");
    const at::Tensor& image = carry.get("image");             // [B, N, D]
    const at::Tensor& text = carry.get("text");               // [B, T, D]
    const auto m = modulation("norm1.linear", condition, 6);  // each [B, 1, D]
    const auto c = modulation("norm1_context.linear", condition, 6);
    const auto n = image_lengths(carry);
    const auto t = text_lengths(carry);
    const auto [text_mixed, mixed] =
        attend_jointly(turned(text_stream("attn", text, c[0], c[1], t), carry, 0),
                       turned(image_stream("attn", image, m[0], m[1], n), carry, text.size(1)), t, n);
    const at::Tensor x = ops::gated_residual(image, m[2], linear("attn.to_out.0", mixed), n);
    const at::Tensor y = ops::gated_residual(text, c[2], linear("attn.to_add_out", text_mixed), t);
    carry.set("image", ops::gated_residual(x, m[5], feed_forward("ff", x, m[3], m[4], n), n));
    carry.set("text", ops::gated_residual(y, c[5], feed_forward("ff_context", y, c[3], c[4], t), t));
  }
};

class FluxSingleBlock final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    auto m = modulation("norm.linear", carry.get("condition"), 3);  // each [B, 1, D]
    const int64_t text = carry.get("text").size(1);
    const at::Tensor x = at::cat({carry.get("text"), carry.get("image")}, 1);  // [B, T + N, D]
    // A pack has all captions, then all pictures: an item's modulation holds for a run of each.
    auto lengths = text_lengths(carry);
    const auto n = image_lengths(carry);
    const auto t = lengths;
    lengths.insert(lengths.end(), n.begin(), n.end());
    if (!n.empty()) {
      for (auto& part : m) part = at::cat({part, part}, 0);
    }
    const auto products =
        products_of_norm(x, m[0], m[1], {"attn.to_q", "attn.to_k", "attn.to_v", "proj_mlp"}, lengths);
    const ops::Stream own = turned({ops::norm_heads(products[0], param("attn.norm_q.weight")),
                                    ops::norm_heads(products[1], param("attn.norm_k.weight")), products[2]},
                                   carry, 0);
    const at::Tensor mixed = n.empty() ? attend(own, {}) : attend_in_items(own, text, t, n);
    const at::Tensor out = ops::remade(
        [mixed, inner = products[3]] {
          return at::cat({mixed, ops::gelu(inner)}, 2);
        },
        [&](const at::Tensor& y) { return linear("proj_out", y); });
    const at::Tensor next = ops::gated_residual(x, m[2], out, lengths);
    carry.set("text", next.narrow(1, 0, text));
    carry.set("image", next.narrow(1, text, x.size(1) - text));
  }

 private:
  /// Of a pack whose first `text` tokens are captions.
  [[nodiscard]] at::Tensor attend_in_items(const ops::Stream& own, int64_t text, const Lengths& t,
                                           const Lengths& n) const {
    const auto part = [&](int64_t first, int64_t count) {
      return ops::Stream{own.q.narrow(1, first, count), own.k.narrow(1, first, count),
                         own.v.narrow(1, first, count)};
    };
    const auto [captions, pictures] = attend_jointly(part(0, text), part(text, own.q.size(1) - text), t, n);
    return at::cat({captions, pictures}, 1);
  }
};

class FluxHead final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = modulation("norm_out.linear", carry.get("condition"), 2);  // scale, shift
    const auto out = products_of_norm(carry.get("image"), m[1], m[0], {"proj_out"}, image_lengths(carry));
    carry.set("prediction", latents_of(out[0], carry, ops::PatchOrder::kChannelFirst));
  }
};

}  // namespace

std::unique_ptr<layers::Layer> make_flux_layer(const spec::LayerDecl& decl,
                                               const spec::DiffusionOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kFluxEmbedding:
      return std::make_unique<FluxEmbedding>(decl, options);
    case spec::LayerKind::kFluxDoubleBlock:
      return std::make_unique<FluxDoubleBlock>(decl, options);
    case spec::LayerKind::kFluxSingleBlock:
      return std::make_unique<FluxSingleBlock>(decl, options);
    case spec::LayerKind::kFluxHead:
      return std::make_unique<FluxHead>(decl, options);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

at::Tensor flux_positions(int64_t text, const std::vector<Grid>& grids) {
  int64_t patches = 0;
  for (const auto& [rows, columns] : grids) patches += rows * columns;
  at::Tensor positions = at::zeros({text + patches, 3}, at::kFloat);
  int64_t first = text;
  for (const auto& [rows, columns] : grids) {
    at::Tensor grid = positions.narrow(0, first, rows * columns).view({rows, columns, 3});
    grid.select(2, 1).copy_(at::arange(rows, at::kFloat).unsqueeze(1).expand({rows, columns}));
    grid.select(2, 2).copy_(at::arange(columns, at::kFloat).unsqueeze(0).expand({rows, columns}));
    first += rows * columns;
  }
  return positions;
}

}  // namespace chiliad::model
