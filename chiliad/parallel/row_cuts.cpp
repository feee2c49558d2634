#include "chiliad/parallel/row_cuts.h"

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::parallel {
namespace {

/// The border of a row that is nearest to `position`.
int64_t nearest_border(const spec::LayerDecl& layer, int64_t position) {
  int64_t begin = 0;
  for (const auto& param : layer.params) {
    const int64_t count = param.shape.count();
    if (position <= begin + count) {
      const int64_t row = param.shape.rank() < 2 ? 1 : count / std::max<int64_t>(1, param.shape[0]);
      return begin + std::min(count, (position - begin + row / 2) / row * row);
    }
    begin += count;
  }
  return begin;
}

}  // namespace

std::vector<int64_t> cut_at_rows(const spec::LayerDecl& layer, int ranks) {
  CHILIAD_CHECK_GT(ranks, 0);
  const int64_t total = layer.num_params();
  std::vector<int64_t> cuts{0};
  for (int rank = 1; rank < ranks; ++rank) {
    cuts.push_back(std::max(cuts.back(), nearest_border(layer, total * rank / ranks)));
  }
  cuts.push_back(total);
  return cuts;
}

}  // namespace chiliad::parallel
