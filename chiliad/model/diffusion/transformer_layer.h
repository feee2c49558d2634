#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/layers/layer.h"
#include "chiliad/ops/joint_attention.h"
#include "chiliad/ops/patches.h"
#include "chiliad/spec/options/diffusion.h"

namespace chiliad::model {

/// Rows and columns of patches.
struct Grid {
  int64_t rows = 0;
  int64_t columns = 0;
  bool operator==(const Grid&) const = default;
};
/// grids: [B, 2] int64 on the host.
[[nodiscard]] std::vector<Grid> grids_in(const at::Tensor& grids);

/// Tokens of each item of a pack; empty: items of one shape.
using Lengths = std::vector<int64_t>;
[[nodiscard]] Lengths image_lengths(const layers::Carry& carry);
[[nodiscard]] Lengths text_lengths(const layers::Carry& carry);

/// What layers of the diffusion transformers have in common. Names of parameters are without the layer's
/// name, or whole ones.
class TransformerLayer : public layers::Layer {
 public:
  TransformerLayer(const spec::LayerDecl& decl, const spec::DiffusionOptions& options)
      : Layer(decl), options_(options) {}

 protected:
  using Tensors = std::vector<at::Tensor>;

  [[nodiscard]] const spec::DiffusionOptions& options() const { return options_; }

  /// Patches of the latents, which a pack has already.   returns: [B, N, C * patch^2]
  [[nodiscard]] at::Tensor patches_in(const layers::Carry& carry) const;
  /// The latents' patches through the convolution `name`.   returns: [B, N, D]
  [[nodiscard]] at::Tensor patch_projection(const std::string& name, const layers::Carry& carry) const;
  /// Time features of t [B] through linear_1, SiLU, linear_2.
  [[nodiscard]] at::Tensor time_mlp(const std::string& name, const at::Tensor& t, int64_t shift = 0) const;
  /// Pooled text [B, C] through linear_1, SiLU, linear_2.
  [[nodiscard]] at::Tensor pooled_mlp(const std::string& name, const at::Tensor& pooled) const;
  /// `parts` modulations made of the condition [B, D].   returns: each [B, 1, D]
  [[nodiscard]] Tensors modulation(const std::string& name, const at::Tensor& condition, int64_t parts) const;
  /// The modulated norm of x times each of the weights.
  [[nodiscard]] Tensors products_of_norm(const at::Tensor& x, const at::Tensor& shift,
                                         const at::Tensor& scale, const std::vector<std::string>& names,
                                         const Lengths& lengths) const;
  /// Attention of the tokens of each item to one another, or to its caption.
  [[nodiscard]] at::Tensor attend(const ops::Stream& own, const Lengths& lengths) const;
  [[nodiscard]] at::Tensor attend(const ops::Stream& of, const at::Tensor& key_mask, const Lengths& lengths,
                                  const Lengths& key_lengths) const;
  /// The same over both streams of an item.
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> attend_jointly(const ops::Stream& first,
                                                                 const ops::Stream& second,
                                                                 const Lengths& first_lengths,
                                                                 const Lengths& second_lengths) const;
  /// Queries, keys and values of image or text made of the modulated norm of x, for the attention `name`;
  /// queries and keys with the norm of heads where the layer has one.
  [[nodiscard]] ops::Stream image_stream(const std::string& name, const at::Tensor& x,
                                         const at::Tensor& shift, const at::Tensor& scale,
                                         const Lengths& lengths) const;
  [[nodiscard]] ops::Stream text_stream(const std::string& name, const at::Tensor& x, const at::Tensor& shift,
                                        const at::Tensor& scale, const Lengths& lengths) const;
  /// The MLP `name` on the modulated norm of x.
  [[nodiscard]] at::Tensor feed_forward(const std::string& name, const at::Tensor& x, const at::Tensor& shift,
                                        const at::Tensor& scale, const Lengths& lengths,
                                        double eps = 1e-6) const;
  /// The latents whose patches are `patches`.   returns: [B, out_channels, H, W] of the carry's latents; of a
  /// pack [1, R, out_channels * patch^2], values in the order of ops::patches_of
  [[nodiscard]] at::Tensor latents_of(const at::Tensor& patches, const layers::Carry& carry,
                                      ops::PatchOrder order) const;

 private:
  /// Names of a stream's products and norms.
  struct StreamNames {
    std::vector<std::string> products;  ///< q, k, v
    std::string query_norm;
    std::string key_norm;
  };
  [[nodiscard]] ops::Stream stream(const StreamNames& names, const at::Tensor& x, const at::Tensor& shift,
                                   const at::Tensor& scale, const Lengths& lengths) const;

  spec::DiffusionOptions options_;
};

}  // namespace chiliad::model
