#include "chiliad/model/diffusion/pixart.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/ops/linear.h"
#include "chiliad/ops/modulation.h"

namespace chiliad::model {
namespace {

using layers::Carry;

class PixartEmbedding final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    at::Tensor condition = time_mlp("adaln_single.emb.timestep_embedder", carry.get("time"));
    if (options().size_conditions) condition = condition + size_conditions(carry);
    carry.set("image",
              patch_projection("pos_embed.proj", carry) + in_compute_type(carry.get("image_positions")));
    carry.set("text", caption(in_compute_type(carry.get("text_states"))));
    carry.set("condition", condition);  // [B, D]
    carry.set("modulation", linear("adaln_single.linear", at::silu(condition)).view({-1, 6, decl().width}));
  }

 private:
  /// Height, width and aspect ratio, each a third of the width.
  [[nodiscard]] at::Tensor size_conditions(const Carry& carry) const {
    const at::Tensor& resolution = carry.get("resolution");  // [B, 2]
    const int64_t items = resolution.size(0);
    const at::Tensor sides =
        time_mlp("adaln_single.emb.resolution_embedder", resolution.flatten()).view({items, -1});
    const at::Tensor ratio =
        time_mlp("adaln_single.emb.aspect_ratio_embedder", carry.get("aspect_ratio").flatten());
    return at::cat({sides, ratio}, 1);  // [B, D]
  }

  [[nodiscard]] at::Tensor caption(const at::Tensor& text) const {
    const at::Tensor inner = linear("caption_projection.linear_1", text);
    return ops::gelu_linear(inner, linear_params("caption_projection.linear_2"));
  }
};

class PixartBlock final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = (carry.get("modulation") + param("scale_shift_table")).chunk(6, 1);  // 6 x [B, 1, D]
    const auto lengths = image_lengths(carry);
    at::Tensor x = carry.get("image");  // [B, N, D]
    const auto own = image_stream("attn1", x, m[0], m[1], lengths);
    x = ops::gated_residual(x, m[2], linear("attn1.to_out.0", attend(own, lengths)), lengths);
    x = x + caption(x, carry, lengths);
    carry.set("image", ops::gated_residual(x, m[5], feed_forward("ff", x, m[3], m[4], lengths), lengths));
  }

 private:
  /// Of x itself: the norm before the MLP is the block's second one.
  [[nodiscard]] at::Tensor caption(const at::Tensor& x, const Carry& carry, const Lengths& lengths) const {
    const at::Tensor& text = carry.get("text");
    const at::Tensor mask = carry.has("text_mask") ? carry.get("text_mask") : at::Tensor();
    const ops::Stream of{linear("attn2.to_q", x), linear("attn2.to_k", text), linear("attn2.to_v", text)};
    return linear("attn2.to_out.0", attend(of, mask, lengths, text_lengths(carry)));
  }
};

class PixartHead final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = (carry.get("condition").unsqueeze(1) + param("scale_shift_table")).chunk(2, 1);
    const auto out = products_of_norm(carry.get("image"), m[0], m[1], {"proj_out"}, image_lengths(carry));
    carry.set("prediction", latents_of(out[0], carry, ops::PatchOrder::kChannelLast));
  }
};

}  // namespace

std::unique_ptr<layers::Layer> make_pixart_layer(const spec::LayerDecl& decl,
                                                 const spec::DiffusionOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kPixartEmbedding:
      return std::make_unique<PixartEmbedding>(decl, options);
    case spec::LayerKind::kPixartBlock:
      return std::make_unique<PixartBlock>(decl, options);
    case spec::LayerKind::kPixartHead:
      return std::make_unique<PixartHead>(decl, options);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

}  // namespace chiliad::model
