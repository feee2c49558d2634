#pragma once

#include <string>
#include <vector>

#include "chiliad/planner/detail/tape_ops.h"

namespace chiliad::planner::detail {

/// What the layers of the diffusion transformers on latents have in common, as
/// model/diffusion/transformer_layer runs it. Names of parameters are without the layer's name, or whole
/// ones; sizes come from the declaration.
class DiffusionTape {
 public:
  DiffusionTape(const spec::LayerDecl& layer, const TapeSetup& setup);

  [[nodiscard]] const Tape& tape() { return ops_.tape(); }
  [[nodiscard]] TapeOps& ops() { return ops_; }
  [[nodiscard]] const spec::LayerDecl& decl() const { return layer_; }
  [[nodiscard]] bool has(const std::string& name) const { return find(name) != nullptr; }

  /// Values of the parameter, and of rows that the linear layer reads and writes.
  [[nodiscard]] int64_t count_of(const std::string& param) const;
  [[nodiscard]] int64_t inputs_of(const std::string& linear) const;
  [[nodiscard]] int64_t outputs_of(const std::string& linear) const;

  // Rows of the micro-batch, and values of an entry.
  [[nodiscard]] int64_t items() const { return ops_.setup().shape.items; }
  [[nodiscard]] int64_t image_rows() const { return items() * ops_.setup().shape.image_tokens; }
  [[nodiscard]] int64_t text_rows() const { return items() * ops_.setup().shape.text_tokens; }
  [[nodiscard]] int64_t image_size() const { return image_rows() * layer_.width; }
  [[nodiscard]] int64_t text_size() const { return text_rows() * layer_.width; }
  [[nodiscard]] int64_t condition_size() const { return items() * layer_.width; }

  Value linear(const std::string& name, Value x, int64_t rows, std::vector<Value> beside = {});
  /// Patches of the latents through a convolution, and positions on top.
  Value embedded_image(const std::string& name, bool positions = true);
  Value time_mlp(const std::string& name, int64_t rows);
  Value pooled_mlp(const std::string& name);
  /// All parts of a modulation: a view that norms and gates read.
  Value modulation(const std::string& name, Value condition);
  /// The modulated norm of x, held by its products alone.
  Value normed(Value x, Value modulation, int64_t rows, bool apart = false);
  /// Queries, keys and values, with the norm of heads where the layer has one.
  struct Stream {
    Value q = 0;
    Value k = 0;
    Value v = 0;
  };
  struct StreamNames {
    std::vector<std::string> products;
    std::string query_norm;
    std::string key_norm;
  };
  Stream stream(const StreamNames& names, Value x, Value modulation, int64_t rows);
  Stream image_stream(const std::string& name, Value x, Value modulation);
  Stream text_stream(const std::string& name, Value x, Value modulation);
  /// A norm of heads of x.
  Value norm_heads(Value x, int64_t rows);
  /// Attention of items' tokens to their own; and of image to text.
  Value self_attention(const Stream& stream, int64_t rows);
  Value cross_attention(Value q, Value k, Value v);
  Value feed_forward(const std::string& name, Value x, Value modulation, int64_t rows);
  /// A copy of tensors side by side; gradients of the parts are views.
  Value joined(const std::vector<Value>& parts, int64_t size);
  /// The head's product and its latents.
  void write_prediction(const std::string& name, Value image, Value modulation, bool apart = false);

 private:
  [[nodiscard]] const spec::ParamDecl* find(const std::string& name) const;

  const spec::LayerDecl& layer_;
  TapeOps ops_;
};

/// The blocks of one stream (dit, pixart) and of two (sd3, flux), and what is before and behind them.
[[nodiscard]] Tape dit_tape(const spec::LayerDecl& layer, const TapeSetup& setup);
[[nodiscard]] Tape pixart_tape(const spec::LayerDecl& layer, const TapeSetup& setup);
[[nodiscard]] Tape sd3_tape(const spec::LayerDecl& layer, const TapeSetup& setup);
[[nodiscard]] Tape flux_tape(const spec::LayerDecl& layer, const TapeSetup& setup);

}  // namespace chiliad::planner::detail
