#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace chiliad::ops {

/// Cosines and sines for positions with several coordinates: each axis turns axis_sizes[i] values of a head
/// by frequencies theta^(-2 j / axis_sizes[i]). Angles in fp64.
/// positions: [T, axes]; axis_sizes: even.   returns: two tables [T, sum of axis_sizes / 2] fp32
/// Source: Flux, EmbedND.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> axis_rotary_tables(const at::Tensor& positions,
                                                                   const std::vector<int64_t>& axis_sizes,
                                                                   double theta = 10000.0);

/// Turns the pairs (x[2 i], x[2 i + 1]) of every head by the token's angles; computed in fp32 (fp64 for
/// fp64).
/// x: [B, T, D], D = heads * head size; cos, sin: [T, head size / 2].
[[nodiscard]] at::Tensor rotate_pairs(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace chiliad::ops
