#pragma once

#include <cstdint>

namespace chiliad::ops {

/// Numbers of one AdamW step; bias corrections are of step `step` (from 1).
struct AdamWStep {
  double lr = 0.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;
  int64_t step = 1;
  double grad_scale = 1.0;  ///< multiplies the gradient first (clipping, planned / actual)
  double ema = 0.0;         ///< decay of the average; used where `average` is given
};

/// The same as an element needs them, rounded once.
struct AdamWFloats {
  float scale;
  float keep1;
  float new1;
  float keep2;
  float new2;
  float shrink;
  float step_size;
  float root_correction2;
  float eps;
  float new_average;
};
[[nodiscard]] AdamWFloats floats_of(const AdamWStep& options);

/// One pass over `count` fp32 values: decoupled decay, moments, update, moving average. The same bits on
/// every machine with IEEE arithmetic (no fused multiply-add). `average` may be null.   Source:
/// torch.optim.AdamW.
void adamw(const AdamWStep& options, int64_t count, float* param, const float* grad, float* exp_avg,
           float* exp_avg_sq, float* average);

/// Sum of squares in double, in fixed order.
[[nodiscard]] double sum_of_squares(const float* values, int64_t count);

}  // namespace chiliad::ops
