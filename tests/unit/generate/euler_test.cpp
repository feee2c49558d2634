#include "chiliad/generate/euler.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace chiliad::generate {
namespace {

TEST(EulerTest, ConstantFieldIsExactAtAnyNumberOfSteps) {
  for (const int steps : {1, 7}) {
    at::Tensor x = at::full({2}, 5.0, at::kDouble);
    const auto times = euler_times(steps, 3.0);
    for (size_t i = 0; i + 1 < times.size(); ++i)
      x = euler_step(x, at::full({2}, 2.0, at::kDouble), times[i], times[i + 1]);
    EXPECT_NEAR(x[0].item<double>(), 3.0, 1e-12) << steps;
  }
}

/// End of dx/dt = x from t = 1 to 0, which is exp(-1) in the limit.
double linear_end(int steps) {
  at::Tensor x = at::ones({1}, at::kDouble);
  const auto times = euler_times(steps, 1.0);
  for (size_t i = 0; i + 1 < times.size(); ++i) x = euler_step(x, x, times[i], times[i + 1]);
  return x.item<double>();
}

TEST(EulerTest, LinearFieldConvergesAtFirstOrder) {
  const double coarse = std::abs(linear_end(50) - std::exp(-1.0));
  const double fine = std::abs(linear_end(100) - std::exp(-1.0));
  EXPECT_NEAR(coarse / fine, 2.0, 0.05);
}

}  // namespace
}  // namespace chiliad::generate
