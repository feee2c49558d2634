#include "chiliad/model/diffusion/dit.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/model/diffusion/transformer_layer.h"
#include "chiliad/ops/modulation.h"

namespace chiliad::model {
namespace {

using layers::Carry;

class DitEmbedding final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const std::string shared = "transformer_blocks.0.norm1.emb.";
    const at::Tensor time = time_mlp(shared + "timestep_embedder", carry.get("time"), options().time_shift);
    const at::Tensor label =
        at::embedding(param(shared + "class_embedder.embedding_table.weight"), carry.get("labels"));
    carry.set("image",
              patch_projection("pos_embed.proj", carry) + in_compute_type(carry.get("image_positions")));
    carry.set("condition", time + label);  // [B, D]
  }
};

class DitBlock final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = modulation("norm1.linear", carry.get("condition"), 6);  // 6 x [B, 1, D]
    const auto lengths = image_lengths(carry);
    at::Tensor x = carry.get("image");  // [B, N, D]
    const auto own = image_stream("attn1", x, m[0], m[1], lengths);
    x = ops::gated_residual(x, m[2], linear("attn1.to_out.0", attend(own, lengths)), lengths);
    const at::Tensor out = feed_forward("ff", x, m[3], m[4], lengths, options().mlp_norm_eps);
    carry.set("image", ops::gated_residual(x, m[5], out, lengths));
  }
};

class DitHead final : public TransformerLayer {
 public:
  using TransformerLayer::TransformerLayer;

  void forward(Carry& carry) const override {
    const auto m = modulation("proj_out_1", carry.get("condition"), 2);  // shift, scale
    const auto out = products_of_norm(carry.get("image"), m[0], m[1], {"proj_out_2"}, image_lengths(carry));
    carry.set("prediction", latents_of(out[0], carry, ops::PatchOrder::kChannelLast));
  }
};

}  // namespace

std::unique_ptr<layers::Layer> make_dit_layer(const spec::LayerDecl& decl,
                                              const spec::DiffusionOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kDitEmbedding:
      return std::make_unique<DitEmbedding>(decl, options);
    case spec::LayerKind::kDitBlock:
      return std::make_unique<DitBlock>(decl, options);
    case spec::LayerKind::kDitHead:
      return std::make_unique<DitHead>(decl, options);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

}  // namespace chiliad::model
