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

at::Tensor time_features(const at::Tensor& t, int64_t size) {
  const at::Tensor angles = t.unsqueeze(1) * frequencies(size / 2).unsqueeze(0);
  return at::cat({at::cos(angles), at::sin(angles)}, 1);
}

at::Tensor grid_positions(int64_t rows, int64_t columns, int64_t width) {
  const at::Tensor row = sin_cos(centred(rows), width / 2).unsqueeze(1).expand({rows, columns, width / 2});
  const at::Tensor column =
      sin_cos(centred(columns), width / 2).unsqueeze(0).expand({rows, columns, width / 2});
  return at::cat({column, row}, 2).reshape({rows * columns, width});
}

at::Tensor line_positions(int64_t count, int64_t width) {
  return sin_cos(at::arange(count, at::kFloat), width);
}

}  // namespace chiliad::ops
