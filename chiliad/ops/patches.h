#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// Squares of a picture as rows; values in the order (channel, row, column), as a convolution's weight.
/// image: [B, C, H, W]; H and W divisible by `patch`.   returns: [B, N, C * patch * patch], row-major
[[nodiscard]] at::Tensor patches_of(const at::Tensor& image, int64_t patch);

enum class PatchOrder {
  kChannelFirst,  ///< (channel, row, column): Flux
  kChannelLast,   ///< (row, column, channel): DiT, PixArt, SD3
};

/// The picture that patches are of.   patches: [B, rows * columns, C * patch * patch]
[[nodiscard]] at::Tensor image_of(const at::Tensor& patches, int64_t rows, int64_t columns, int64_t patch,
                                  PatchOrder order);

}  // namespace chiliad::ops
