#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace chiliad::ops {

/// How rotary frequencies are stretched to a longer context.
enum class RotaryScaling { kNone, kLinear, kLlama3, kYarn };

struct RotaryOptions {
  int64_t head_size = 0;  ///< even
  double theta = 10000.0;
  RotaryScaling scaling = RotaryScaling::kNone;
  double factor = 1.0;
  int64_t original_context = 0;   ///< llama3, yarn
  double low_frequency = 1.0;     ///< llama3
  double high_frequency = 4.0;    ///< llama3
  double beta_fast = 32.0;        ///< yarn
  double beta_slow = 1.0;         ///< yarn
  double attention_factor = 0.0;  ///< yarn; 0: 0.1 ln(factor) + 1
};

/// Angle a position, for each pair of values.   returns: [head_size / 2] fp32.
/// Source: transformers, modeling_rope_utils.
[[nodiscard]] at::Tensor rotary_frequencies(const RotaryOptions& options);

/// Cosines and sines.  positions: [T] int64.   returns: two tables [T, head_size / 2] fp32
[[nodiscard]] std::pair<at::Tensor, at::Tensor> rotary_tables(const RotaryOptions& options,
                                                              const at::Tensor& positions);

/// Turns the pairs (x[i], x[i + d / 2]) of every head by the token's angles.
/// x: [T, H, d]; cos, sin: [T, d / 2], cast to the type of x.
[[nodiscard]] at::Tensor rotate(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace chiliad::ops
