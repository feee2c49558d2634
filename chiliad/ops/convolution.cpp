#include "chiliad/ops/convolution.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <functional>

#include "chiliad/ops/group_norm.h"
#include "chiliad/ops/wide_type.h"

namespace chiliad::ops {
namespace {

/// Rows [first, first + count) of what is convolved.
using MakeRows = std::function<at::Tensor(int64_t first, int64_t count)>;

bool wants_strips(const at::Tensor& x, const at::Tensor& kernel, int64_t positions) {
  if (at::GradMode::is_enabled() || !x.is_cpu()) return false;
  return x.size(0) * positions * std::max(kernel.size(0), kernel.size(1)) > kMostStripValues;
}

at::Tensor convolve_strips(const at::Tensor& x, int64_t height, int64_t width, const MakeRows& make,
                           const at::Tensor& kernel, const at::Tensor& bias) {
  const int64_t reach = kernel.size(2) / 2;
  const int64_t row_values = x.size(0) * width * std::max(kernel.size(0), kernel.size(1));
  const int64_t rows = std::max<int64_t>(kMostStripValues / row_values, 8);
  at::Tensor out = at::empty({x.size(0), kernel.size(0), height, width}, x.options());
  for (int64_t first = 0; first < height; first += rows) {
    const int64_t count = std::min(rows, height - first);
    const int64_t begin = std::max<int64_t>(first - reach, 0);
    const int64_t end = std::min(first + count + reach, height);
    at::Tensor strip = make(begin, end - begin);
    const int64_t above = begin - (first - reach);
    const int64_t below = first + count + reach - end;
    if (above + below > 0) strip = at::constant_pad_nd(strip, {0, 0, above, below});
    const int64_t padding[] = {0, reach};
    out.narrow(2, first, count).copy_(at::conv2d(strip, kernel, bias, {1, 1}, padding));
  }
  return out;
}

/// Scale and shift of each channel of each item, [B, C, 1, 1] in fp32 at least, so that the normed value is
/// x * scale + shift. One group at a time: a copy of all of x would be as large as what strips save.
std::pair<at::Tensor, at::Tensor> norm_as_affine(const at::Tensor& x, const GroupNormParams& norm) {
  const at::ScalarType wide = wide_type(x);
  const int64_t items = x.size(0);
  const int64_t each = x.size(1) / norm.groups;
  at::Tensor mean = at::empty({items, norm.groups}, x.options().dtype(wide));
  at::Tensor scale = at::empty_like(mean);
  for (int64_t item = 0; item < items; ++item) {
    for (int64_t group = 0; group < norm.groups; ++group) {
      const at::Tensor values = x[item].narrow(0, group * each, each).to(wide);
      const at::Tensor middle = values.mean();
      const at::Tensor square = (values - middle).square_().mean();
      mean[item][group].copy_(middle);
      scale[item][group].copy_((square + norm.eps).rsqrt());
    }
  }
  const at::Tensor channel_scale = scale.repeat_interleave(each, 1) * norm.weight.to(wide);  // [B, C]
  const at::Tensor shift = norm.bias.to(wide) - mean.repeat_interleave(each, 1) * channel_scale;
  return {channel_scale.view({items, -1, 1, 1}), shift.view({items, -1, 1, 1})};
}

}  // namespace

at::Tensor convolve(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& bias) {
  if (!wants_strips(x, kernel, x.size(2) * x.size(3))) {
    return at::conv2d(x, kernel, bias, 1, kernel.size(2) / 2);
  }
  return convolve_strips(
      x, x.size(2), x.size(3),
      [&](int64_t first, int64_t count) { return x.narrow(2, first, count).contiguous(); }, kernel, bias);
}

at::Tensor norm_silu_convolve(const at::Tensor& x, const GroupNormParams& norm, const at::Tensor& kernel,
                              const at::Tensor& bias) {
  if (!wants_strips(x, kernel, x.size(2) * x.size(3))) {
    return convolve(group_norm_silu(x, norm.groups, norm.weight, norm.bias, norm.eps), kernel, bias);
  }
  const auto [scale, shift] = norm_as_affine(x, norm);
  const auto make = [&, scale = scale, shift = shift](int64_t first, int64_t count) {
    at::Tensor normed = at::addcmul(shift, x.narrow(2, first, count).to(scale.scalar_type()), scale);
    return at::silu_(normed).to(x.scalar_type());
  };
  return convolve_strips(x, x.size(2), x.size(3), make, kernel, bias);
}

at::Tensor upsample_convolve(const at::Tensor& x, const at::Tensor& kernel, const at::Tensor& bias) {
  const int64_t height = 2 * x.size(2);
  const int64_t width = 2 * x.size(3);
  if (!wants_strips(x, kernel, height * width)) {
    return convolve(at::upsample_nearest2d(x, {height, width}), kernel, bias);
  }
  const auto make = [&](int64_t first, int64_t count) {
    const int64_t begin = first / 2;
    const int64_t rows = (first + count + 1) / 2 - begin;
    return at::upsample_nearest2d(x.narrow(2, begin, rows), {2 * rows, width})
        .narrow(2, first - 2 * begin, count)
        .contiguous();
  };
  return convolve_strips(x, height, width, make, kernel, bias);
}

}  // namespace chiliad::ops
