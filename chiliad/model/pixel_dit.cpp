#include "chiliad/model/pixel_dit.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/ops/modulation.h"
#include "chiliad/ops/remake.h"

namespace chiliad::model {
namespace {

using layers::Carry;
using layers::Layer;
using layers::TensorParallel;

class TextEmbedding final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor& tokens = carry.get("tokens");
    carry.set("text", at::embedding(params()[0], tokens) +
                          in_compute_type(carry.get("text_positions")));  // [B, T, D]
  }
};

/// The text is not cut: every rank has all tokens.
class TextBlock final : public Layer {
 public:
  TextBlock(const spec::LayerDecl& layer, int64_t heads, TensorParallel ranks)
      : Layer(layer, ranks), heads_(heads / ranks.size()) {}

  void forward(Carry& carry) const override {
    const at::Tensor& text = carry.get("text");
    const auto qkv = after_norm("norm1", text, "attn.qkv").chunk(3, -1);
    const at::Tensor mixed = ops::attention(qkv[0], qkv[1], qkv[2], heads_, carry.get("token_mask"));
    const at::Tensor x = text + linear_sum("attn.proj", mixed);
    const at::Tensor inner = after_norm("norm2", x, "mlp.fc1");
    carry.set("text", x + ops::remade([inner] { return ops::gelu(inner); },
                                      [&](const at::Tensor& y) { return linear_sum("mlp.fc2", y); }));
  }

 private:
  [[nodiscard]] at::Tensor after_norm(const std::string& norm, const at::Tensor& x,
                                      const std::string& projection) const {
    const auto make = [x, weight = param(norm + ".weight"), bias = param(norm + ".bias")] {
      return ops::layer_norm(x, weight, bias);
    };
    return ops::remade(make, [&](const at::Tensor& y) { return linear(projection, y); });
  }

  int64_t heads_;
};

class ImageEmbedding final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor text =
        ops::layer_norm(carry.get("text"), param("text_norm.weight"), param("text_norm.bias"));
    const at::Tensor weights = in_compute_type(carry.get("token_weights"));  // [B, 1, T], rows sum to 1
    const at::Tensor mean = at::bmm(weights, text).squeeze(1);               // [B, D]
    const at::Tensor features = in_compute_type(ops::time_features(carry.get("time") * 1000.0, 256));
    const at::Tensor time = linear("time.fc2", at::silu(linear("time.fc1", features)));
    const at::Tensor condition = time + linear("caption", mean);  // [B, D]
    const at::Tensor patches =
        in_compute_type(layers::own_rows(ranks(), carry.get("patches")));  // [B, N_rank, 3 p p]
    const at::Tensor positions =
        in_compute_type(layers::own_rows(ranks(), carry.get("image_positions").unsqueeze(0)));
    carry.set("image", linear("patch", patches) + positions);
    carry.set("text", text);
    carry.set("condition", condition);
    carry.set("modulation", linear("modulation", at::silu(condition)).view({text.size(0), 6, decl().width}));
  }
};

/// Each rank has its rows of the image, and all of them inside the three wide regions.
class DiffusionBlock final : public Layer {
 public:
  DiffusionBlock(const spec::LayerDecl& layer, int64_t heads, TensorParallel ranks)
      : Layer(layer, ranks), heads_(heads / ranks.size()) {}

  void forward(Carry& carry) const override {
    const at::Tensor& text = carry.get("text");
    const auto m = (carry.get("modulation") + param("scale_shift_table")).chunk(6, 1);  // 6 x [B, 1, D]
    at::Tensor x = carry.get("image");                                                  // [B, N_rank, D]
    const auto qkv = after_norm(x, m[0], m[1], "attn.qkv", carry).chunk(3, -1);
    const at::Tensor mixed = ops::attention(qkv[0], qkv[1], qkv[2], heads_, {});
    x = ops::gated_residual(x, m[2], linear_scatter("attn.proj", mixed));
    const auto kv = linear("cross.kv", text).chunk(2, -1);
    const at::Tensor q = gather_linear("cross.q", x, num_rows(carry)).out;
    const at::Tensor seen = ops::attention(q, kv[0], kv[1], heads_, carry.get("token_mask"));
    x = x + linear_scatter("cross.proj", seen);
    const at::Tensor inner = after_norm(x, m[3], m[4], "mlp.fc1", carry);
    const at::Tensor out = ops::remade([inner] { return ops::gelu(inner); },
                                       [&](const at::Tensor& y) { return linear_scatter("mlp.fc2", y); });
    carry.set("image", ops::gated_residual(x, m[5], out));
  }

 private:
  [[nodiscard]] static int64_t num_rows(const Carry& carry) { return carry.get("image_positions").size(0); }

  /// What was gathered is not made again: that would be another exchange.
  [[nodiscard]] at::Tensor after_norm(const at::Tensor& x, const at::Tensor& shift, const at::Tensor& scale,
                                      const std::string& projection, const Carry& carry) const {
    const auto make = [x, shift, scale] { return ops::norm_modulate(x, shift, scale); };
    if (ranks().size() > 1) return gather_linear(projection, make(), num_rows(carry)).out;
    return ops::remade(make, [&](const at::Tensor& y) { return linear(projection, y); });
  }

  int64_t heads_;
};

class ImageHead final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor& x = carry.get("image");
    const auto m =
        (carry.get("condition").unsqueeze(1) + param("scale_shift_table")).chunk(2, 1);  // 2 x [B, 1, D]
    carry.set("prediction", linear("proj", ops::norm_modulate(x, m[0], m[1])));          // [B, N_rank, 3 p p]
  }
};

}  // namespace

std::unique_ptr<Layer> make_pixel_dit_layer(const spec::LayerDecl& decl, const spec::ModelOptions& options,
                                            TensorParallel ranks) {
  switch (decl.kind) {
    case spec::LayerKind::kTextEmbedding:
      return std::make_unique<TextEmbedding>(decl, ranks);
    case spec::LayerKind::kTextBlock:
      return std::make_unique<TextBlock>(decl, options.heads, ranks);
    case spec::LayerKind::kImageEmbedding:
      return std::make_unique<ImageEmbedding>(decl, ranks);
    case spec::LayerKind::kDiffusionBlock:
      return std::make_unique<DiffusionBlock>(decl, options.heads, ranks);
    case spec::LayerKind::kImageHead:
      return std::make_unique<ImageHead>(decl, ranks);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

}  // namespace chiliad::model
