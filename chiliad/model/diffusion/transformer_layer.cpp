#include "chiliad/model/diffusion/transformer_layer.h"

#include <ATen/ATen.h>

#include "chiliad/ops/embedding.h"
#include "chiliad/ops/linear.h"

namespace chiliad::model {
namespace {

constexpr int64_t kTimeFeatures = 256;
constexpr double kNormEps = 1e-6;

}  // namespace

at::Tensor TransformerLayer::patch_projection(const std::string& name, const layers::Carry& carry) const {
  const at::Tensor patches = in_compute_type(ops::patches_of(carry.get("latents"), options_.patch));
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
                                                             const std::vector<std::string>& names) const {
  std::vector<ops::LinearParams> params;
  for (const auto& name : names) params.push_back(linear_params(name));
  return ops::norm_modulate_linears(x, shift, scale, kNormEps, params);
}

ops::Stream TransformerLayer::stream(const StreamNames& names, const at::Tensor& x, const at::Tensor& shift,
                                     const at::Tensor& scale) const {
  const auto qkv = products_of_norm(x, shift, scale, names.products);
  if (!has_param(names.query_norm + ".weight")) return {qkv[0], qkv[1], qkv[2]};
  return {ops::norm_heads(qkv[0], param(names.query_norm + ".weight")),
          ops::norm_heads(qkv[1], param(names.key_norm + ".weight")), qkv[2]};
}

ops::Stream TransformerLayer::image_stream(const std::string& name, const at::Tensor& x,
                                           const at::Tensor& shift, const at::Tensor& scale) const {
  return stream({{name + ".to_q", name + ".to_k", name + ".to_v"}, name + ".norm_q", name + ".norm_k"}, x,
                shift, scale);
}

ops::Stream TransformerLayer::text_stream(const std::string& name, const at::Tensor& x,
                                          const at::Tensor& shift, const at::Tensor& scale) const {
  return stream({{name + ".add_q_proj", name + ".add_k_proj", name + ".add_v_proj"},
                 name + ".norm_added_q",
                 name + ".norm_added_k"},
                x, shift, scale);
}

at::Tensor TransformerLayer::feed_forward(const std::string& name, const at::Tensor& x,
                                          const at::Tensor& shift, const at::Tensor& scale,
                                          double eps) const {
  const auto inner = ops::norm_modulate_linears(x, shift, scale, eps, {linear_params(name + ".net.0.proj")});
  return ops::gelu_linear(inner[0], linear_params(name + ".net.2"));
}

at::Tensor TransformerLayer::latents_of(const at::Tensor& patches, const layers::Carry& carry,
                                        ops::PatchOrder order) const {
  const at::Tensor& latents = carry.get("latents");
  return ops::image_of(patches, latents.size(2) / options_.patch, latents.size(3) / options_.patch,
                       options_.patch, order);
}

}  // namespace chiliad::model
