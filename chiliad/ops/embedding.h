#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace chiliad::ops {

/// Sin-cos features of a time: cos first, then sin, frequencies exp(-ln(1e4) i / (size / 2)).
/// t: [B] fp32 (0..1000).   returns: [B, size] fp32.   Source: DiT (frequency shift 0).
[[nodiscard]] at::Tensor time_features(const at::Tensor& t, int64_t size);

/// Fixed sin-cos positions of a grid, centred, so that pictures of every shape share their middle.
/// returns: [rows * columns, width] fp32, row-major; first half encodes the column, second half the row.
[[nodiscard]] at::Tensor grid_positions(int64_t rows, int64_t columns, int64_t width);

/// The same for a line of tokens, counted from 0.   returns: [count, width]
[[nodiscard]] at::Tensor line_positions(int64_t count, int64_t width);

}  // namespace chiliad::ops
