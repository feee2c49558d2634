#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <utility>

namespace chiliad::ops {

/// How rotary frequencies are stretched to a longer context.
enum class RotaryScaling { kNone, kLinear, kDynamic, kLlama3, kYarn };

struct RotaryOptions {
  int64_t head_size = 0;  ///< even
  double theta = 10000.0;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1.0;
  int64_t original_context = 0;   ///< dynamic, llama3, yarn
  double low_frequency = 1.0;     ///< llama3
  double high_frequency = 4.0;    ///< llama3
  double beta_fast = 32.0;        ///< yarn
  double beta_slow = 1.0;         ///< yarn
  double attention_factor = 0.0;  ///< yarn; 0: 0.1 ln(factor) + 1
};

/// Angle a position, for each pair of values, in a document of `length` tokens (on which they depend with
/// kDynamic beyond the original context alone).   returns: [head_size / 2] fp32.
/// Source: transformers, modeling_rope_utils.
[[nodiscard]] at::Tensor rotary_frequencies(const RotaryOptions& options, int64_t length = 0);

/// Cosines and sines for documents one after the other, positions from 0 in each: a document's do not depend
/// on its neighbours.   returns: two tables [sum of lengths, head_size / 2] fp32, on the host
[[nodiscard]] std::pair<at::Tensor, at::Tensor> rotary_tables(const RotaryOptions& options,
                                                              std::span<const int64_t> lengths);

/// Turns the pairs (x[i], x[i + d / 2]) of every head by the token's angles.
/// x: [T, H, d]; cos, sin: [T, d / 2], cast to the type of x.
[[nodiscard]] at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace chiliad::ops
