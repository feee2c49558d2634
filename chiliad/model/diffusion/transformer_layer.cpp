#include "chiliad/model/diffusion/transformer_layer.h"

#include <ATen/ATen.h>

#include <numeric>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/embedding.h"
#include "chiliad/ops/linear.h"

namespace chiliad::model {
namespace {

constexpr int64_t kTimeFeatures = 256;
constexpr double kNormEps = 1e-6;

/// One item of all, where a planted bug lets the items of a pack see each other.
Lengths kept_apart(const Lengths& lengths) {
  if (!planted_bug("pack_items_meet")) return lengths;
  return {std::accumulate(lengths.begin(), lengths.end(), int64_t{0})};
}

}  // namespace

std::vector<Grid> grids_in(const at::Tensor& grids) {
  CHILIAD_CHECK(grids.dim() == 2 && grids.size(1) == 2 && grids.is_contiguous());
  const auto* values = grids.const_data_ptr<int64_t>();
  std::vector<Grid> made;
  for (int64_t i = 0; i < grids.size(0); ++i) made.push_back({values[2 * i], values[2 * i + 1]});
  return made;
}

Lengths image_lengths(const layers::Carry& carry) {
  if (!carry.has("image_grids")) return {};
  Lengths lengths;
  for (const auto& [rows, columns] : grids_in(carry.get("image_grids"))) lengths.push_back(rows * columns);
  return lengths;
}

Lengths text_lengths(const layers::Carry& carry) {
  if (!carry.has("text_lengths")) return {};
  const at::Tensor& lengths = carry.get("text_lengths");
  const auto* values = lengths.const_data_ptr<int64_t>();
  return {values, values + lengths.numel()};
}

at::Tensor TransformerLayer::patches_in(const layers::Carry& carry) const {
  const at::Tensor& latents = carry.get("latents");
  return in_compute_type(latents.dim() == 3 ? latents : ops::patches_of(latents, options_.patch));
}

at::Tensor TransformerLayer::patch_projection(const std::string& name, const layers::Carry& carry) const {
  const at::Tensor patches = patches_in(carry);
  return ops::linear(patches, {param(name + ".weight").flatten(1), param(name + ".bias")});
}

at::Tensor TransformerLayer::time_mlp(const std::string& name, const at::Tensor& t, int64_t shift) const {
  const at::Tensor features = in_compute_type(ops::time_features(t, kTimeFeatures, shift));
  return linear(name + ".linear_2", at::silu(linear(name + ".linear_1", features)));
}

at::Tensor TransformerLayer::pooled_mlp(const std::string& name, const at::Tensor& pooled) const {
  return linear(name + ".linear_2", at::silu(linear(name + ".linear_1", in_compute_type(pooled))));
}

TransformerLayer::Tensors TransformerLayer::modulation(const std::string& name, const at::Tensor& condition,
                                                       int64_t parts) const {
  return linear(name, at::silu(condition)).unsqueeze(1).chunk(parts, -1);
}

TransformerLayer::Tensors TransformerLayer::products_of_norm(const at::Tensor& x, const at::Tensor& shift,
                                                             const at::Tensor& scale,
                                                             const std::vector<std::string>& names,
                                                             const Lengths& lengths) const {
  std::vector<ops::LinearParams> params;
  for (const auto& name : names) params.push_back(linear_params(name));
  return ops::norm_modulate_linears(x, shift, scale, kNormEps, params, lengths);
}

at::Tensor TransformerLayer::attend(const ops::Stream& own, const Lengths& lengths) const {
  return attend(own, {}, lengths, lengths);
}

at::Tensor TransformerLayer::attend(const ops::Stream& of, const at::Tensor& key_mask, const Lengths& lengths,
                                    const Lengths& key_lengths) const {
  if (lengths.empty()) return ops::attention(of.q, of.k, of.v, options_.heads, key_mask);
  CHILIAD_CHECK(!key_mask.defined(), "a pack has no padding to mask");
  return ops::packed_attention(of.q[0], of.k[0], of.v[0], options_.heads, kept_apart(lengths),
                               kept_apart(key_lengths))
      .unsqueeze(0);
}

std::pair<at::Tensor, at::Tensor> TransformerLayer::attend_jointly(const ops::Stream& first,
                                                                   const ops::Stream& second,
                                                                   const Lengths& first_lengths,
                                                                   const Lengths& second_lengths) const {
  if (first_lengths.empty()) return ops::joint_attention(first, second, options_.heads);
  return ops::packed_joint_attention(first, second, options_.heads, kept_apart(first_lengths),
                                     kept_apart(second_lengths));
}

ops::Stream TransformerLayer::stream(const StreamNames& names, const at::Tensor& x, const at::Tensor& shift,
                                     const at::Tensor& scale, const Lengths& lengths) const {
  const auto qkv = products_of_norm(x, shift, scale, names.products, lengths);
  if (!has_param(names.query_norm + ".weight")) return {qkv[0], qkv[1], qkv[2]};
  return {ops::norm_heads(qkv[0], param(names.query_norm + ".weight")),
          ops::norm_heads(qkv[1], param(names.key_norm + ".weight")), qkv[2]};
}

ops::Stream TransformerLayer::image_stream(const std::string& name, const at::Tensor& x,
                                           const at::Tensor& shift, const at::Tensor& scale,
                                           const Lengths& lengths) const {
  return stream({{name + ".to_q", name + ".to_k", name + ".to_v"}, name + ".norm_q", name + ".norm_k"}, x,
                shift, scale, lengths);
}

ops::Stream TransformerLayer::text_stream(const std::string& name, const at::Tensor& x,
                                          const at::Tensor& shift, const at::Tensor& scale,
                                          const Lengths& lengths) const {
  return stream({{name + ".add_q_proj", name + ".add_k_proj", name + ".add_v_proj"},
                 name + ".norm_added_q",
                 name + ".norm_added_k"},
                x, shift, scale, lengths);
}

at::Tensor TransformerLayer::feed_forward(const std::string& name, const at::Tensor& x,
                                          const at::Tensor& shift, const at::Tensor& scale,
                                          const Lengths& lengths, double eps) const {
  const auto inner =
      ops::norm_modulate_linears(x, shift, scale, eps, {linear_params(name + ".net.0.proj")}, lengths);
  return ops::gelu_linear(inner[0], linear_params(name + ".net.2"));
}

at::Tensor TransformerLayer::latents_of(const at::Tensor& patches, const layers::Carry& carry,
                                        ops::PatchOrder order) const {
  const at::Tensor& latents = carry.get("latents");
  if (latents.dim() == 3) {
    if (order == ops::PatchOrder::kChannelFirst) return patches;
    const int64_t area = options_.patch * options_.patch;
    return patches.view({1, patches.size(1), area, -1}).transpose(2, 3).reshape(patches.sizes());
  }
  return ops::image_of(patches, latents.size(2) / options_.patch, latents.size(3) / options_.patch,
                       options_.patch, order);
}

}  // namespace chiliad::model
