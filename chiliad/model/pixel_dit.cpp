#include "chiliad/model/pixel_dit.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/ops/modulation.h"

namespace chiliad::model {
namespace {

using layers::Carry;
using layers::Layer;

class TextEmbedding final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor& tokens = carry.get("tokens");
    carry.set("text", at::embedding(params()[0], tokens) + carry.get("text_positions"));  // [B, T, D]
  }
};

class TextBlock final : public Layer {
 public:
  TextBlock(const spec::LayerDecl& layer, int64_t heads) : Layer(layer), heads_(heads) {}

  void forward(Carry& carry) const override {
    const at::Tensor& text = carry.get("text");
    const auto qkv =
        linear("attn.qkv", ops::layer_norm(text, param("norm1.weight"), param("norm1.bias"))).chunk(3, -1);
    const at::Tensor mixed = ops::attention(qkv[0], qkv[1], qkv[2], heads_, carry.get("token_mask"));
    const at::Tensor x = text + linear("attn.proj", mixed);
    const at::Tensor normed = ops::layer_norm(x, param("norm2.weight"), param("norm2.bias"));
    carry.set("text", x + ops::mlp(normed, param("mlp.fc1.weight"), param("mlp.fc1.bias"),
                                   param("mlp.fc2.weight"), param("mlp.fc2.bias")));
  }

 private:
  int64_t heads_;
};

class ImageEmbedding final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor text =
        ops::layer_norm(carry.get("text"), param("text_norm.weight"), param("text_norm.bias"));
    const at::Tensor& weights = carry.get("token_weights");     // [B, 1, T], rows sum to 1
    const at::Tensor mean = at::bmm(weights, text).squeeze(1);  // [B, D]
    const at::Tensor features = ops::time_features(carry.get("time") * 1000.0, 256);
    const at::Tensor time = linear("time.fc2", at::silu(linear("time.fc1", features)));
    const at::Tensor condition = time + linear("caption", mean);  // [B, D]
    carry.set("image", linear("patch", carry.get("patches")) + carry.get("image_positions"));
    carry.set("text", text);
    carry.set("condition", condition);
    carry.set("modulation", linear("modulation", at::silu(condition)).view({text.size(0), 6, decl().width}));
  }
};

class DiffusionBlock final : public Layer {
 public:
  DiffusionBlock(const spec::LayerDecl& layer, int64_t heads) : Layer(layer), heads_(heads) {}

  void forward(Carry& carry) const override {
    const at::Tensor& text = carry.get("text");
    const auto m = (carry.get("modulation") + param("scale_shift_table")).chunk(6, 1);  // 6 x [B, 1, D]
    at::Tensor x = carry.get("image");
    const auto qkv = linear("attn.qkv", ops::norm_modulate(x, m[0], m[1])).chunk(3, -1);
    const at::Tensor mixed = ops::attention(qkv[0], qkv[1], qkv[2], heads_, {});
    x = ops::gated_residual(x, m[2], linear("attn.proj", mixed));
    const auto kv = linear("cross.kv", text).chunk(2, -1);
    const at::Tensor seen =
        ops::attention(linear("cross.q", x), kv[0], kv[1], heads_, carry.get("token_mask"));
    x = x + linear("cross.proj", seen);
    const at::Tensor y = ops::mlp(ops::norm_modulate(x, m[3], m[4]), param("mlp.fc1.weight"),
                                  param("mlp.fc1.bias"), param("mlp.fc2.weight"), param("mlp.fc2.bias"));
    carry.set("image", ops::gated_residual(x, m[5], y));
  }

 private:
  int64_t heads_;
};

class ImageHead final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor& x = carry.get("image");
    const auto m =
        (carry.get("condition").unsqueeze(1) + param("scale_shift_table")).chunk(2, 1);  // 2 x [B, 1, D]
    carry.set("prediction", linear("proj", ops::norm_modulate(x, m[0], m[1])));          // [B, N, 3 p p]
  }
};

}  // namespace

std::unique_ptr<Layer> make_pixel_dit_layer(const spec::LayerDecl& decl, const spec::ModelOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kTextEmbedding:
      return std::make_unique<TextEmbedding>(decl);
    case spec::LayerKind::kTextBlock:
      return std::make_unique<TextBlock>(decl, options.heads);
    case spec::LayerKind::kImageEmbedding:
      return std::make_unique<ImageEmbedding>(decl);
    case spec::LayerKind::kDiffusionBlock:
      return std::make_unique<DiffusionBlock>(decl, options.heads);
    case spec::LayerKind::kImageHead:
      return std::make_unique<ImageHead>(decl);
  }
  throw InternalError(decl.name, "layer kind without a builder");
}

}  // namespace chiliad::model
