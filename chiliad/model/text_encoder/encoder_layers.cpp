#include "chiliad/model/text_encoder/encoder_layers.h"

#include <ATen/ATen.h>

#include <cmath>

#include "chiliad/base/error.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/rms_norm.h"

namespace chiliad::model {
namespace {

using layers::Carry;
using layers::Layer;

at::Tensor activate(const std::string& name, const at::Tensor& x) {
  if (name == "gelu") return at::gelu(x);
  if (name == "gelu_tanh") return at::gelu(x, "tanh");
  if (name == "quick_gelu") return x * at::sigmoid(1.702 * x);
  if (name == "relu") return at::relu(x);
  throw InvalidInput("text encoder",
                     fmt::format("activation: expected gelu, gelu_tanh, quick_gelu or relu, got "
                                 "'{}'. Choose one",
                                 name));
}

/// x: [B, T, heads * S].   returns: [B, heads, T, S]
at::Tensor split_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

at::Tensor join_heads(const at::Tensor& x) {
  return x.transpose(1, 2).flatten(2);
}

class EncoderLayer : public Layer {
 public:
  EncoderLayer(const spec::LayerDecl& decl, const spec::TextEncoderOptions& options)
      : Layer(decl), options_(options) {}

 protected:
  [[nodiscard]] at::Tensor layer_norm(const std::string& name, const at::Tensor& x) const {
    return at::layer_norm(x, {x.size(-1)}, param(name + ".weight"), param(name + ".bias"), options_.norm_eps);
  }
  [[nodiscard]] at::Tensor table(const std::string& name, const at::Tensor& ids) const {
    return at::embedding(param(name), ids);
  }
  [[nodiscard]] at::Tensor activation(const at::Tensor& x) const { return activate(options_.activation, x); }
  [[nodiscard]] const spec::TextEncoderOptions& options() const { return options_; }

 private:
  spec::TextEncoderOptions options_;
};

class BertEmbedding final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    const at::Tensor& tokens = carry.get("tokens");
    const at::Tensor x = table("word_embeddings.weight", tokens) +
                         table("token_type_embeddings.weight", carry.get("token_types")) +
                         param("position_embeddings.weight").narrow(0, 0, tokens.size(1));  // [B, T, D]
    carry.set("hidden", layer_norm("LayerNorm", x));
  }
};

/// Norms come behind the sums.
class BertBlock final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    at::Tensor x = carry.get("hidden");  // [B, T, D]
    const at::Tensor mixed =
        ops::attention(linear("attention.self.query", x), linear("attention.self.key", x),
                       linear("attention.self.value", x), options().heads, carry.get("key_mask"));
    x = layer_norm("attention.output.LayerNorm", x + linear("attention.output.dense", mixed));
    const at::Tensor wide = activation(linear("intermediate.dense", x));
    carry.set("hidden", layer_norm("output.LayerNorm", x + linear("output.dense", wide)));
  }
};

class BertPooler final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    carry.set("pooled", at::tanh(linear("dense", carry.get("hidden").select(1, 0))));
  }
};

class ClipTextEmbedding final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    const at::Tensor& tokens = carry.get("tokens");
    carry.set("hidden", table("token_embedding.weight", tokens) +
                            param("position_embedding.weight").narrow(0, 0, tokens.size(1)));
  }
};

/// Causal, and without a mask of padding: what comes behind the end token is seen by padding alone.
class ClipTextBlock final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    at::Tensor x = carry.get("hidden");  // [B, T, D]
    x = x + attention(layer_norm("layer_norm1", x));
    const at::Tensor wide = activation(linear("mlp.fc1", layer_norm("layer_norm2", x)));
    carry.set("hidden", x + linear("mlp.fc2", wide));
  }

 private:
  [[nodiscard]] at::Tensor attention(const at::Tensor& x) const {
    const auto part = [&](const char* name) { return split_heads(linear(name, x), options().heads); };
    const at::Tensor mixed = at::scaled_dot_product_attention(
        part("self_attn.q_proj"), part("self_attn.k_proj"), part("self_attn.v_proj"), {}, 0.0, true);
    return linear("self_attn.out_proj", join_heads(mixed));
  }
};

class ClipTextHead final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    const at::Tensor x = layer_norm("final_layer_norm", carry.get("hidden"));  // [B, T, D]
    const at::Tensor at_end = end_positions(carry.get("tokens")).view({-1, 1, 1}).expand({-1, 1, x.size(2)});
    const at::Tensor pooled = x.gather(1, at_end).squeeze(1);  // [B, D]
    carry.set("hidden", x);
    carry.set("pooled", params().size() > 2 ? at::linear(pooled, params()[2]) : pooled);
  }

 private:
  /// The first end token of each row.
  [[nodiscard]] at::Tensor end_positions(const at::Tensor& tokens) const {
    if (options().pool_at_largest) return tokens.argmax(1);
    return tokens.eq(options().end_token).to(at::kInt).argmax(1);
  }
};

class T5Embedding final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override { carry.set("hidden", table("weight", carry.get("tokens"))); }
};

/// Scores are not scaled; the first block's table of relative positions is added to those of all.
class T5Block final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    at::Tensor x = carry.get("hidden");  // [B, T, D]
    if (has_param(kBiasTable)) carry.set("position_bias", position_bias(x.size(1)));
    x = x + attention(norm("layer.0", x), carry);
    carry.set("hidden", x + linear("layer.1.DenseReluDense.wo", wide(norm("layer.1", x))));
  }

 private:
  static constexpr const char* kBiasTable = "layer.0.SelfAttention.relative_attention_bias.weight";

  [[nodiscard]] at::Tensor norm(const std::string& part, const at::Tensor& x) const {
    return ops::rms_norm(x, param(part + ".layer_norm.weight"), options().norm_eps);
  }

  [[nodiscard]] at::Tensor wide(const at::Tensor& x) const {
    const std::string name = "layer.1.DenseReluDense.wi";
    if (!options().gated) return activation(linear(name, x));
    return activation(linear(name + "_0", x)) * linear(name + "_1", x);
  }

  [[nodiscard]] at::Tensor attention(const at::Tensor& x, const Carry& carry) const {
    const auto part = [&](const char* name) {
      return split_heads(linear(std::string("layer.0.SelfAttention.") + name, x), options().heads);
    };
    const at::Tensor v = part("v");
    at::Tensor scores = at::matmul(part("q"), part("k").transpose(2, 3)).to(at::kFloat);  // [B, heads, T, T]
    scores = scores + carry.get("position_bias");
    const at::Tensor hidden_keys = carry.get("key_mask").logical_not();
    scores = scores.masked_fill(hidden_keys.view({x.size(0), 1, 1, x.size(1)}),
                                -std::numeric_limits<float>::infinity());
    const at::Tensor mixed = at::matmul(at::softmax(scores, -1).to(v.scalar_type()), v);
    return linear("layer.0.SelfAttention.o", join_heads(mixed));
  }

  /// returns: [1, heads, T, T] fp32
  [[nodiscard]] at::Tensor position_bias(int64_t length) const {
    const at::Tensor& bias = param(kBiasTable);
    const at::Tensor at_ids = at::arange(length, at::TensorOptions(at::kLong).device(bias.device()));
    const at::Tensor ids = buckets(at_ids.unsqueeze(0) - at_ids.unsqueeze(1));  // [T, T], key - query
    return at::embedding(bias, ids).permute({2, 0, 1}).unsqueeze(0).to(at::kFloat);
  }

  /// Half of the buckets are for keys behind the query. Of a half, the first half are distances, the others
  /// are logarithmic up to max_distance.
  [[nodiscard]] at::Tensor buckets(const at::Tensor& offset) const {
    const int64_t half = options().buckets / 2;
    const int64_t exact = half / 2;
    const at::Tensor distance = offset.abs();
    const double octaves = std::log(static_cast<double>(options().max_distance) / static_cast<double>(exact));
    const at::Tensor far =
        (at::log(distance.to(at::kFloat) / exact) / octaves * (half - exact)).to(at::kLong) + exact;
    const at::Tensor bucket = at::where(distance.lt(exact), distance, far.clamp_max(half - 1));
    return bucket + offset.gt(0).to(at::kLong) * half;
  }
};

class T5Norm final : public EncoderLayer {
 public:
  using EncoderLayer::EncoderLayer;

  void forward(Carry& carry) const override {
    carry.set("hidden",
              ops::rms_norm(carry.get("hidden"), param("final_layer_norm.weight"), options().norm_eps));
  }
};

}  // namespace

std::unique_ptr<Layer> make_text_encoder_layer(const spec::LayerDecl& decl,
                                               const spec::TextEncoderOptions& options) {
  switch (decl.kind) {
    case spec::LayerKind::kBertEmbedding:
      return std::make_unique<BertEmbedding>(decl, options);
    case spec::LayerKind::kBertBlock:
      return std::make_unique<BertBlock>(decl, options);
    case spec::LayerKind::kBertPooler:
      return std::make_unique<BertPooler>(decl, options);
    case spec::LayerKind::kClipTextEmbedding:
      return std::make_unique<ClipTextEmbedding>(decl, options);
    case spec::LayerKind::kClipTextBlock:
      return std::make_unique<ClipTextBlock>(decl, options);
    case spec::LayerKind::kClipTextHead:
      return std::make_unique<ClipTextHead>(decl, options);
    case spec::LayerKind::kT5Embedding:
      return std::make_unique<T5Embedding>(decl, options);
    case spec::LayerKind::kT5Block:
      return std::make_unique<T5Block>(decl, options);
    case spec::LayerKind::kT5Norm:
      return std::make_unique<T5Norm>(decl, options);
    default:
      throw InternalError(decl.name, "no layer of a text encoder");
  }
}

}  // namespace chiliad::model
