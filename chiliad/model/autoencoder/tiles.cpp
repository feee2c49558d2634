#include "chiliad/model/autoencoder/tiles.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::model::autoencoder {

std::vector<Span> spans_of(int64_t length, int64_t tile, int64_t overlap) {
  CHILIAD_CHECK(tile > 0 && overlap >= 0 && overlap < tile);
  if (length <= tile) return {{0, length}};
  const int64_t step = tile - overlap;
  const int64_t gaps = (length - tile + step - 1) / step;
  std::vector<Span> spans;
  for (int64_t i = 0; i <= gaps; ++i) spans.push_back({i * (length - tile) / gaps, tile});
  return spans;
}

std::vector<at::Tensor> blend_weights(const std::vector<Span>& spans, int64_t overlap, int64_t scale) {
  const int64_t whole = (spans.back().begin + spans.back().length) * scale;
  const double ramp = static_cast<double>(std::max<int64_t>(overlap * scale, 1));
  at::Tensor sums = at::zeros({whole}, at::kFloat);
  std::vector<at::Tensor> weights;
  for (size_t k = 0; k < spans.size(); ++k) {
    const int64_t length = spans[k].length * scale;
    const at::Tensor centres = at::arange(length, at::kFloat) + 0.5;
    at::Tensor weight = at::ones({length}, at::kFloat);
    if (k > 0) weight = at::minimum(weight, centres / ramp);
    if (k + 1 < spans.size()) weight = at::minimum(weight, (static_cast<double>(length) - centres) / ramp);
    sums.narrow(0, spans[k].begin * scale, length).add_(weight);
    weights.push_back(weight);
  }
  for (size_t k = 0; k < spans.size(); ++k)
    weights[k].div_(sums.narrow(0, spans[k].begin * scale, weights[k].size(0)));
  return weights;
}

at::Tensor run_tiled(const TiledRun& run, const at::Tensor& input,
                     const std::function<at::Tensor(const at::Tensor&)>& function) {
  const int64_t height = input.size(2) / run.in_scale;
  const int64_t width = input.size(3) / run.in_scale;
  const auto rows = spans_of(height, run.tile, run.overlap);
  const auto columns = spans_of(width, run.tile, run.overlap);
  if (rows.size() == 1 && columns.size() == 1) return function(input).to(at::kFloat);
  const auto row_weights = blend_weights(rows, run.overlap, run.out_scale);
  const auto column_weights = blend_weights(columns, run.overlap, run.out_scale);
  at::Tensor out;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < columns.size(); ++c) {
      const at::Tensor part =
          input.narrow(2, rows[r].begin * run.in_scale, rows[r].length * run.in_scale)
              .narrow(3, columns[c].begin * run.in_scale, columns[c].length * run.in_scale);
      const at::Tensor made = function(part.contiguous()).to(at::kFloat);
      if (!out.defined()) {
        out = at::zeros({made.size(0), made.size(1), height * run.out_scale, width * run.out_scale},
                        made.options());
      }
      const at::Tensor weight =
          (row_weights[r].unsqueeze(1) * column_weights[c].unsqueeze(0)).to(made.device());
      out.narrow(2, rows[r].begin * run.out_scale, rows[r].length * run.out_scale)
          .narrow(3, columns[c].begin * run.out_scale, columns[c].length * run.out_scale)
          .addcmul_(made, weight);
    }
  }
  return out;
}

}  // namespace chiliad::model::autoencoder
