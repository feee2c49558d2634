#include "chiliad/ops/adamw.h"

#include <array>
#include <cmath>

// Elementwise loops without contraction: every clone rounds alike, so the choice of instruction set changes
// no bit.
#define CHILIAD_WIDE \
  __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "no-math-errno")))

namespace chiliad::ops {

AdamWFloats floats_of(const AdamWStep& options) {
  const auto steps = static_cast<double>(options.step);
  const double correction1 = 1.0 - std::pow(options.beta1, steps);
  const double correction2 = 1.0 - std::pow(options.beta2, steps);
  AdamWFloats numbers{};
  numbers.scale = static_cast<float>(options.grad_scale);
  numbers.keep1 = static_cast<float>(options.beta1);
  numbers.new1 = static_cast<float>(1.0 - options.beta1);
  numbers.keep2 = static_cast<float>(options.beta2);
  numbers.new2 = static_cast<float>(1.0 - options.beta2);
  numbers.shrink = static_cast<float>(1.0 - options.lr * options.weight_decay);
  numbers.step_size = static_cast<float>(options.lr / correction1);
  numbers.root_correction2 = static_cast<float>(std::sqrt(correction2));
  numbers.eps = static_cast<float>(options.eps);
  numbers.new_average = static_cast<float>(1.0 - options.ema);
  return numbers;
}

CHILIAD_WIDE void adamw(const AdamWStep& options, int64_t count, float* __restrict param,
                        const float* __restrict grad, float* __restrict exp_avg, float* __restrict exp_avg_sq,
                        float* __restrict average) {
  const AdamWFloats numbers = floats_of(options);
  const float scale = numbers.scale;
  const float keep1 = numbers.keep1;
  const float new1 = numbers.new1;
  const float keep2 = numbers.keep2;
  const float new2 = numbers.new2;
  const float shrink = numbers.shrink;
  const float step_size = numbers.step_size;
  const float root_correction2 = numbers.root_correction2;
  const float eps = numbers.eps;
  const float new_average = numbers.new_average;
  for (int64_t i = 0; i < count; ++i) {
    const float g = grad[i] * scale;
    const float m = keep1 * exp_avg[i] + new1 * g;
    const float v = keep2 * exp_avg_sq[i] + new2 * (g * g);
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    // The builtin: std::sqrt is not inlined here, since the attribute's options differ; errno: see
    // CMakeLists.txt.
    const float p = param[i] * shrink - step_size * (m / (__builtin_sqrtf(v) / root_correction2 + eps));
    param[i] = p;
    if (average != nullptr)
      average[i] = average[i] + new_average * (p - average[i]);  // hoisted by the compiler
  }
}

double sum_of_squares(const float* values, int64_t count) {
  constexpr int kLanes = 8;
  std::array<double, kLanes> lanes{};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const double x = values[i + lane];
      lanes[static_cast<size_t>(lane)] += x * x;
    }
  }
  double total = 0.0;
  for (; i < count; ++i) total += static_cast<double>(values[i]) * values[i];
  for (const double lane : lanes) total += lane;
  return total;
}

}  // namespace chiliad::ops
