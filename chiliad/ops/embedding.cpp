#include "chiliad/ops/embedding.h"

#include <ATen/ATen.h>

#include <cmath>

namespace chiliad::ops {
namespace {

at::Tensor frequencies(int64_t count) {
  return at::exp(at::arange(count, at::kFloat) * (-std::log(10000.0) / static_cast<double>(count)));
}

at::Tensor sin_cos(const at::Tensor& positions, int64_t width) {
  const at::Tensor angles = positions.unsqueeze(1) * frequencies(width / 2).unsqueeze(0);
  return at::cat({at::sin(angles), at::cos(angles)}, 1);  // [n, width]
}

at::Tensor centred(int64_t count) {
  return at::arange(count, at::kFloat) - static_cast<double>(count - 1) / 2.0;
}

}  // namespace

at::Tensor time_features(const at::Tensor& t, int64_t size, int64_t shift) {
  // The order of the two operations is the reference's: angles reach 1000, so a rounding shows.
  const at::Tensor exponents =
      at::arange(size / 2, at::kFloat) * -std::log(10000.0) / static_cast<double>(size / 2 - shift);
  const at::Tensor angles = t.unsqueeze(1) * at::exp(exponents).to(t.device()).unsqueeze(0);
  return at::cat({at::cos(angles), at::sin(angles)}, 1);
}

at::Tensor grid_positions(int64_t rows, int64_t columns, int64_t width) {
  const at::Tensor row = sin_cos(centred(rows), width / 2).unsqueeze(1).expand({rows, columns, width / 2});
  const at::Tensor column =
      sin_cos(centred(columns), width / 2).unsqueeze(0).expand({rows, columns, width / 2});
  return at::cat({column, row}, 2).reshape({rows * columns, width});
}

at::Tensor stretched_grid_positions(int64_t rows, int64_t columns, int64_t width, int64_t base,
                                    double scale) {
  const auto axis = [&](int64_t count) {
    const double ratio = static_cast<double>(count) / static_cast<double>(base);
    const at::Tensor places = (at::arange(count, at::kFloat) / ratio / scale).to(at::kDouble);
    const auto pairs = static_cast<double>(width / 4);
    const at::Tensor frequencies = 1.0 / at::pow(10000.0, at::arange(width / 4, at::kDouble) / pairs);
    const at::Tensor angles = places.unsqueeze(1) * frequencies.unsqueeze(0);
    return at::cat({at::sin(angles), at::cos(angles)}, 1).to(at::kFloat);  // [count, width / 2]
  };
  const at::Tensor row = axis(rows).unsqueeze(1).expand({rows, columns, width / 2});
  const at::Tensor column = axis(columns).unsqueeze(0).expand({rows, columns, width / 2});
  return at::cat({column, row}, 2).reshape({rows * columns, width});
}

at::Tensor line_positions(int64_t count, int64_t width) {
  return sin_cos(at::arange(count, at::kFloat), width);
}

}  // namespace chiliad::ops
