#include "chiliad/spec/tensor_shard.h"

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad::spec {
namespace {

int64_t divided(const ParamDecl& param, int64_t extent, int64_t by) {
  if (extent % by == 0) return extent / by;
  throw InvalidInput(
      "parallel.tp",
      fmt::format("{} of shape {} cannot be cut into {} parts: {} is not a multiple of {}. Choose a number "
                  "that divides it",
                  param.name, param.shape.to_string(), by, extent, by));
}

Shape local_shape(const ParamDecl& param, int size) {
  if (param.split == Split::kNone || size == 1) return param.shape;
  auto sizes = param.shape.sizes();
  if (param.split == Split::kRows) {
    sizes[0] = divided(param, param.shape[0], param.parts * size) * param.parts;
  } else {
    sizes[1] = divided(param, param.shape[1], size);
  }
  return Shape(std::move(sizes));
}

}  // namespace

std::pair<int64_t, int64_t> even_part(int64_t length, int index, int count) {
  const int64_t base = length / count;
  const int64_t larger = length % count;
  const int64_t begin = base * index + std::min<int64_t>(index, larger);
  return {begin, begin + base + (index < larger ? 1 : 0)};
}

int64_t num_row_chunks(int64_t length, int64_t items, int64_t size) {
  constexpr int64_t kMost = 4;
  constexpr int64_t kRowsOfProduct = 256;  // fewer would make products slow
  return std::clamp(length / size * items / kRowsOfProduct, int64_t{1}, kMost);
}

LayerDecl tensor_shard(const LayerDecl& layer, int size) {
  LayerDecl local = layer;
  for (auto& param : local.params) param.shape = local_shape(param, size);
  return local;
}

std::vector<ShardBox> shard_boxes(const ParamDecl& whole, int rank, int size, int64_t begin, int64_t end) {
  const Shape local = local_shape(whole, size);
  if (local.rank() == 0) return {{0, 1, Box::whole(whole.shape)}};
  const bool by_rows = whole.split == Split::kRows && size > 1;
  const int64_t parts = by_rows ? whole.parts : 1;
  const int64_t local_rows = local[0] / parts;  // of a fused part
  const int64_t whole_rows = whole.shape[0] / parts;
  std::vector<ShardBox> boxes;
  for (int64_t part = 0; part < parts; ++part) {
    const int64_t low = std::max(begin, part * local_rows);
    const int64_t high = std::min(end, (part + 1) * local_rows);
    if (high <= low) continue;
    const int64_t first = part * whole_rows + (by_rows ? rank * local_rows : 0) + low - part * local_rows;
    Box box = Box::rows(whole.shape, first, high - low);
    if (whole.split == Split::kColumns && size > 1) {
      auto offset = box.offset.sizes();
      auto extent = box.size.sizes();
      offset[1] = rank * local[1];
      extent[1] = local[1];
      box = {Shape(std::move(offset)), Shape(std::move(extent))};
    }
    boxes.push_back({low, high - low, std::move(box)});
  }
  return boxes;
}

}  // namespace chiliad::spec
