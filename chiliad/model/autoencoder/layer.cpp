#include "chiliad/model/autoencoder/layer.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/ops/attention.h"
#include "chiliad/ops/convolution.h"
#include "chiliad/ops/group_norm.h"

namespace chiliad::model::autoencoder {
namespace {

constexpr double kNormEps = 1e-6;

}  // namespace

at::Tensor ConvolutionLayer::take_hidden(layers::Carry& carry) {
  at::Tensor x = carry.get("hidden");
  if (!at::GradMode::is_enabled()) carry.set("hidden", {});
  return x;
}

bool ConvolutionLayer::has(const std::string& name) const {
  for (const auto& param : decl().params) {
    if (param.name == name + ".weight") return true;
  }
  return false;
}

const at::Tensor& ConvolutionLayer::find(const std::string& name) const {
  for (size_t i = 0; i < decl().params.size(); ++i) {
    if (decl().params[i].name == name) return params()[i];
  }
  throw InternalError(decl().name, fmt::format("no parameter '{}'", name));
}

at::Tensor ConvolutionLayer::convolve(const std::string& name, const at::Tensor& x) const {
  return ops::convolve(x, weight(name), bias(name));
}

at::Tensor ConvolutionLayer::norm_convolve(const std::string& norm, const std::string& convolution,
                                           const at::Tensor& x) const {
  return ops::norm_silu_convolve(x, {norm_groups_, weight(norm), bias(norm), kNormEps}, weight(convolution),
                                 bias(convolution));
}

at::Tensor ConvolutionLayer::downsample(const std::string& name, const at::Tensor& x) const {
  return at::conv2d(at::constant_pad_nd(x, {0, 1, 0, 1}), weight(name), bias(name), 2);
}

at::Tensor ConvolutionLayer::upsample(const std::string& name, const at::Tensor& x) const {
  return ops::upsample_convolve(x, weight(name), bias(name));
}

at::Tensor ConvolutionLayer::residual_block(const std::string& name, at::Tensor x) const {
  at::Tensor h = norm_convolve(name + ".norm1", name + ".conv1", x);
  const std::string shortcut = name + ".conv_shortcut";
  if (has(shortcut)) x = convolve(shortcut, x);
  h = norm_convolve(name + ".norm2", name + ".conv2", h);
  return at::GradMode::is_enabled() ? x + h : h.add_(x);
}

at::Tensor ConvolutionLayer::attention_block(const std::string& name, const at::Tensor& x) const {
  const auto linear = [&](const char* product, const at::Tensor& rows) {
    return at::linear(rows, weight(name + product), bias(name + product));
  };
  const std::string norm = name + ".group_norm";
  const at::Tensor normed = ops::group_norm(x, norm_groups_, weight(norm), bias(norm), kNormEps);
  const at::Tensor rows = normed.flatten(2).transpose(1, 2).contiguous();  // [B, H W, C]
  const at::Tensor mixed =
      ops::attention(linear(".to_q", rows), linear(".to_k", rows), linear(".to_v", rows), 1, {});
  return x + linear(".to_out.0", mixed).transpose(1, 2).reshape(x.sizes());
}

at::Tensor ConvolutionLayer::middle(const std::string& name, at::Tensor x) const {
  at::Tensor h = residual_block(name + ".resnets.0", std::move(x));
  const std::string attention = name + ".attentions.0";
  if (has(attention + ".to_q")) h = attention_block(attention, h);
  return residual_block(name + ".resnets.1", std::move(h));
}

}  // namespace chiliad::model::autoencoder
