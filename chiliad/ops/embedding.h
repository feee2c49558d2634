#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// Sin-cos features of a time: cos first, then sin, frequencies exp(-ln(1e4) i / (size / 2 - shift)).
/// t: [B] fp32 (0..1000).   returns: [B, size] fp32.   Source: DiT (shift 0); diffusers has shift 1 there.
[[nodiscard]] at::Tensor time_features(const at::Tensor& t, int64_t size, int64_t shift = 0);

/// Fixed sin-cos positions of a grid, centred, so that pictures of every shape share their middle.
/// returns: [rows * columns, width] fp32, row-major; first half encodes the column, second half the row.
[[nodiscard]] at::Tensor grid_positions(int64_t rows, int64_t columns, int64_t width);

/// Sin-cos positions of a grid counted from 0, in units in which a grid of `base` has one a patch, divided by
/// `scale`: a grid of another size is stretched over the same extent.
/// returns: as grid_positions; angles in fp64.   Source: PixArt-alpha.
[[nodiscard]] at::Tensor stretched_grid_positions(int64_t rows, int64_t columns, int64_t width, int64_t base,
                                                  double scale);

/// The same for a line of tokens, counted from 0.   returns: [count, width]
[[nodiscard]] at::Tensor line_positions(int64_t count, int64_t width);

}  // namespace chiliad::ops
