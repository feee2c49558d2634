#include "chiliad/base/shape.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "chiliad/base/error.h"

namespace chiliad {

std::optional<int64_t> Shape::checked_count() const {
  int64_t product = 1;
  for (const int64_t size : sizes_) {
    if (size < 0 || __builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  return product;
}

int64_t Shape::count() const {
  const auto product = checked_count();
  CHILIAD_CHECK(product.has_value(), "shape {} has no valid count", to_string());
  return *product;
}

std::string Shape::to_string() const {
  return fmt::format("[{}]", fmt::join(sizes_, ", "));
}

Box Box::whole(const Shape& shape) {
  return {Shape(std::vector<int64_t>(static_cast<size_t>(shape.rank()), 0)), shape};
}

Box Box::rows(const Shape& shape, int64_t first, int64_t num_rows) {
  CHILIAD_CHECK_GE(shape.rank(), 1);
  std::vector<int64_t> offset(static_cast<size_t>(shape.rank()), 0);
  std::vector<int64_t> size = shape.sizes();
  offset[0] = first;
  size[0] = num_rows;
  Box box{Shape(std::move(offset)), Shape(std::move(size))};
  CHILIAD_CHECK(box.inside(shape), "rows {} outside of {}", box.to_string(), shape.to_string());
  return box;
}

bool Box::inside(const Shape& shape) const {
  if (offset.rank() != shape.rank() || size.rank() != shape.rank()) return false;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (offset[axis] < 0 || size[axis] < 0 || size[axis] > shape[axis] - offset[axis]) return false;
  }
  return true;
}

std::optional<Box> Box::intersect(const Box& other) const {
  CHILIAD_CHECK_EQ(offset.rank(), other.offset.rank());
  std::vector<int64_t> begin;
  std::vector<int64_t> extent;
  for (int axis = 0; axis < offset.rank(); ++axis) {
    const int64_t low = std::max(offset[axis], other.offset[axis]);
    const int64_t high = std::min(offset[axis] + size[axis], other.offset[axis] + other.size[axis]);
    if (high <= low) return std::nullopt;
    begin.push_back(low);
    extent.push_back(high - low);
  }
  return Box{Shape(std::move(begin)), Shape(std::move(extent))};
}

std::string Box::to_string() const {
  std::string text = "[";
  for (int axis = 0; axis < offset.rank(); ++axis) {
    text += fmt::format("{}{}:{}", axis == 0 ? "" : ", ", offset[axis], offset[axis] + size[axis]);
  }
  return text + "]";
}

}  // namespace chiliad
