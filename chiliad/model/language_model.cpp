#include "chiliad/model/language_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/layers/vocabulary.h"
#include "chiliad/ops/remake.h"
#include "chiliad/ops/rms_norm.h"
#include "chiliad/ops/rotary.h"
#include "chiliad/ops/swiglu.h"
#include "chiliad/ops/varlen_attention.h"
#include "chiliad/spec/loss_chunk.h"

namespace chiliad::model {
namespace {

using layers::Carry;
using layers::Layer;
using layers::TensorParallel;

class TokenEmbedding final : public Layer {
 public:
  using Layer::Layer;

  void forward(Carry& carry) const override {
    const at::Tensor& table = param("weight");
    carry.set("hidden", layers::vocabulary_embedding(ranks(), table, carry.get("tokens")));
    if (decl().writes.size() > 1) carry.set("embedding_weight", table);
  }
};

class DecoderBlock final : public Layer {
 public:
  DecoderBlock(const spec::LayerDecl& decl, double norm_eps, TensorParallel ranks)
      : Layer(decl, ranks), norm_eps_(norm_eps) {}

  void forward(Carry& carry) const override {
    at::Tensor x = carry.get("hidden");  // [1, T_rank, D]
    x = x + attention(x, carry);
    const auto gate_up =
        products_of_norm(x, "post_attention_layernorm.weight", {"mlp.gate_proj", "mlp.up_proj"}, carry);
    carry.set("hidden",
              x + ops::remade([gate_up] { return ops::swiglu(gate_up[0], gate_up[1]); },
                              [&](const at::Tensor& y) { return linear_scatter("mlp.down_proj", y); }));
  }

 private:
  using Tensors = std::vector<at::Tensor>;

  /// The norm of this rank's rows, all rows of it times each of the weights. What was gathered is not made
  /// again: that would be another exchange.
  [[nodiscard]] Tensors products_of_norm(const at::Tensor& x, const std::string& norm,
                                         const std::vector<std::string>& names, const Carry& carry) const {
    const auto make = [x, scale = param(norm), eps = norm_eps_] { return ops::rms_norm(x, scale, eps); };
    const auto products = [&](const at::Tensor& rows, size_t first) {
      Tensors out;
      for (size_t i = first; i < names.size(); ++i) out.push_back(linear(names[i], rows));
      return out;
    };
    if (ranks().size() == 1)
      return ops::remade_for_all(make, [&](const at::Tensor& y) { return products(y, 0); });
    const auto first = gather_linear(names[0], make(), carry.get("tokens").size(0), names.size() > 1);
    Tensors out = products(first.rows, 1);
    out.insert(out.begin(), first.out);
    return out;
  }

  [[nodiscard]] at::Tensor attention(const at::Tensor& x, const Carry& carry) const {
    const at::Tensor& cos = carry.get("rope_cos");
    const at::Tensor& sin = carry.get("rope_sin");
    const auto qkv = products_of_norm(x, "input_layernorm.weight",
                                      {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}, carry);
    const at::Tensor q = ops::rotate(heads(qkv[0]), cos, sin);
    const at::Tensor k = ops::rotate(heads(qkv[1]), cos, sin);
    const auto parts = ops::attend_documents(q, k, heads(qkv[2]), carry.get("cu_seqlens"));
    if (parts.size() == 1) return projected(ops::join_documents(parts));  // no copy
    return ops::remade([parts] { return ops::join_documents(parts); },
                       [&](const at::Tensor& mixed) { return projected(mixed); });
  }

  [[nodiscard]] at::Tensor projected(const at::Tensor& mixed) const {
    return linear_scatter("self_attn.o_proj", mixed.view({1, mixed.size(0), -1}));
  }

  /// x: [1, T, D].   returns: [T, heads of this rank, head size]
  [[nodiscard]] at::Tensor heads(const at::Tensor& x) const {
    return x.view({x.size(1), -1, decl().head_size});
  }

  double norm_eps_;
};

class LanguageHead final : public Layer {
 public:
  LanguageHead(const spec::LayerDecl& decl, double norm_eps, TensorParallel ranks)
      : Layer(decl, ranks), norm_eps_(norm_eps) {}

  void forward(Carry& carry) const override {
    const at::Tensor own = ops::rms_norm(carry.get("hidden"), params()[0], norm_eps_);
    const at::Tensor hidden =
        layers::gather_rows(ranks(), own, carry.get("tokens").size(0)).squeeze(0);  // [T, D]
    const at::Tensor& table = params().size() > 1 ? params()[1] : carry.get("embedding_weight");
    if (!carry.has("targets")) {
      carry.set("logits", at::linear(hidden, table));  // [T, V_rank]
      return;
    }
    const int64_t chunk = spec::loss_chunk(table.size(0));
    const auto losses = layers::vocabulary_loss(ranks(), hidden, table, carry.get("targets"),
                                                carry.get("token_weights"), chunk);
    carry.set("loss", losses.loss);
    carry.set("token_losses", losses.tokens);
  }

 private:
  double norm_eps_;
};

ops::RotaryScaling rotary_scaling(const std::string& name) {
  if (name == "none") return ops::RotaryScaling::kNone;
  if (name == "linear") return ops::RotaryScaling::kLinear;
  if (name == "dynamic") return ops::RotaryScaling::kDynamic;
  if (name == "llama3") return ops::RotaryScaling::kLlama3;
  if (name == "yarn") return ops::RotaryScaling::kYarn;
  throw InvalidInput(
      "model.rope_scaling",
      fmt::format("expected none, linear, dynamic, llama3 or yarn, got '{}'. Choose one", name));
}

ops::RotaryOptions rotary_options(const spec::ModelOptions& options) {
  return {.head_size = options.head_size == 0 ? options.width / options.heads : options.head_size,
          .theta = options.rope_theta,
          .scaling = rotary_scaling(options.rope_scaling),
          .factor = options.rope_factor,
          .original_context = options.rope_original_context,
          .low_frequency = options.rope_low_frequency,
          .high_frequency = options.rope_high_frequency,
          .beta_fast = options.rope_beta_fast,
          .beta_slow = options.rope_beta_slow,
          .attention_factor = options.rope_attention_factor};
}

at::Tensor document_positions(const std::vector<int64_t>& lengths, int64_t num_tokens) {
  at::Tensor positions = at::empty({num_tokens}, at::kLong);
  auto* next = positions.mutable_data_ptr<int64_t>();
  for (const int64_t length : lengths) {
    for (int64_t i = 0; i < length; ++i) *next++ = i;
  }
  return positions;
}

}  // namespace

std::unique_ptr<Layer> make_language_layer(const spec::LayerDecl& decl, const spec::ModelOptions& options,
                                           TensorParallel ranks) {
  switch (decl.kind) {
    case spec::LayerKind::kTokenEmbedding:
      return std::make_unique<TokenEmbedding>(decl, ranks);
    case spec::LayerKind::kDecoderBlock:
      return std::make_unique<DecoderBlock>(decl, options.norm_eps, ranks);
    case spec::LayerKind::kLanguageHead:
      return std::make_unique<LanguageHead>(decl, options.norm_eps, ranks);
    default:
      throw InternalError(decl.name, "layer kind without a builder in this family");
  }
}

Carry make_text_input(const spec::ModelOptions& options, const TextBatch& batch) {
  const int64_t num_tokens = batch.tokens.size(0);
  const auto lengths = ops::document_lengths(batch.cu_seqlens, num_tokens);
  const at::Tensor positions = document_positions(lengths, num_tokens).to(batch.tokens.device());
  const auto [cos, sin] = ops::rotary_tables(rotary_options(options), lengths);
  Carry carry;
  carry.set("tokens", batch.tokens);
  carry.set("positions", positions);
  carry.set("cu_seqlens", batch.cu_seqlens);
  carry.set("rope_cos", cos.to(batch.tokens.device()));
  carry.set("rope_sin", sin.to(batch.tokens.device()));
  if (batch.targets.defined()) {
    carry.set("targets", batch.targets);
    carry.set("token_weights", batch.token_weights);
  }
  return carry;
}

}  // namespace chiliad::model
