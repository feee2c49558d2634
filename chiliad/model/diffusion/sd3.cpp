#include "chiliad/model/diffusion/sd3.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/ops/modulation.h"

namespace chiliad::model {
namespace {

using layers::Carry;

class Sd3Positions final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    if (!carry.has("image_grids")) {
      const at::Tensor& latents = carry.get("latents");
      carry.set("image_positions",
                positions_of({latents.size(2) / options().patch, latents.size(3) / options().patch}));
      return;
    }
    std::vector<at::Tensor> parts;
    for (const Grid& grid : grids_in(carry.get("image_grids"))) parts.push_back(positions_of(grid));
    carry.set("image_positions", at::cat(parts, 0));
  }

 private:
  /// The middle of the table.
  [[nodiscard]] at::Tensor positions_of(const Grid& grid) const {
    const int64_t most = options().max_positions;
    const at::Tensor table = params()[0].view({most, most, decl().width});
    return table.narrow(0, (most - grid.rows) / 2, grid.rows)
        .narrow(1, (most - grid.columns) / 2, grid.columns)
        .reshape({grid.rows * grid.columns, decl().width});
  }
};

class Sd3Embedding final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    carry.set("image",
              patch_projection("pos_embed.proj", carry) + in_compute_type(carry.get("image_positions")));
    carry.set("text", linear("context_embedder", in_compute_type(carry.get("text_states"))));
    carry.set("condition", time_mlp("time_text_embed.timestep_embedder", carry.get("time")) +
                               pooled_mlp("time_text_embed.text_embedder", carry.get("pooled")));
  }
};

class Sd3Block final : public TransformerLayer {
 public:
  Sd3Block(const spec::LayerDecl& decl, const spec::DiffusionOptions& options)
      : TransformerLayer(decl, options),
        dual_(decl.kind == spec::LayerKind::kSd3DualBlock),
        last_(decl.writes.size() == 1) {}

  void forward(Carry& carry) const override {
    const at::Tensor& condition = carry.get("condition");
    const at::Tensor& image = carry.get("image");                         // [B, N, D]
    const at::Tensor& text = carry.get("text");                           // [B, T, D]
    const auto m = modulation("norm1.linear", condition, dual_ ? 9 : 6);  // each [B, 1, D]
    // The last block's text is only read: scale and shift, in this order.
    const auto c = modulation("norm1_context.linear", condition, last_ ? 2 : 6);
    const auto n = image_lengths(carry);
    const auto t = text_lengths(carry);
    const auto [mixed, text_mixed] =
        attend_jointly(image_stream("attn", image, m[0], m[1], n),
                       text_stream("attn", text, c[last_ ? 1 : 0], c[last_ ? 0 : 1], t), n, t);
    at::Tensor x = ops::gated_residual(image, m[2], linear("attn.to_out.0", mixed), n);
    if (dual_) x = ops::gated_residual(x, m[8], second_attention(image, m[6], m[7], n), n);
    if (!last_) {
      const at::Tensor y = ops::gated_residual(text, c[2], linear("attn.to_add_out", text_mixed), t);
      carry.set("text", ops::gated_residual(y, c[5], feed_forward("ff_context", y, c[3], c[4], t), t));
    }
    carry.set("image", ops::gated_residual(x, m[5], feed_forward("ff", x, m[3], m[4], n), n));
  }

 private:
  [[nodiscard]] at::Tensor second_attention(const at::Tensor& image, const at::Tensor& shift,
                                            const at::Tensor& scale, const Lengths& lengths) const {
    return linear("attn2.to_out.0", attend(image_stream("attn2", image, shift, scale, lengths), lengths));
  }

  bool dual_;
  bool last_;
};

class Sd3Head final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = modulation("norm_out.linear", carry.get("condition"), 2);  // scale, shift
    const auto out = products_of_norm(carry.get("image"), m[1], m[0], {"proj_out"}, image_lengths(carry));
    carry.set("prediction", latents_of(out[0], carry, ops::PatchOrder::kChannelLast));
  }
};

}  // namespace

std::unique_ptr<layers::Layer> make_sd3_layer(const spec::LayerDecl& decl,
                                              const spec::DiffusionOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kSd3Positions:
      return std::make_unique<Sd3Positions>(decl, options);
    case spec::LayerKind::kSd3Embedding:
      return std::make_unique<Sd3Embedding>(decl, options);
    case spec::LayerKind::kSd3Block:
    case spec::LayerKind::kSd3DualBlock:
      return std::make_unique<Sd3Block>(decl, options);
    case spec::LayerKind::kSd3Head:
      return std::make_unique<Sd3Head>(decl, options);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

}  // namespace chiliad::model
