#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace chiliad {

/// Extents of an N-d array, outermost first. Rank 0 is a scalar (one element).
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> sizes) : sizes_(sizes) {}
  explicit Shape(std::vector<int64_t> sizes) : sizes_(std::move(sizes)) {}

  [[nodiscard]] int rank() const { return static_cast<int>(sizes_.size()); }
  [[nodiscard]] int64_t operator[](int axis) const { return sizes_.at(static_cast<size_t>(axis)); }
  [[nodiscard]] const std::vector<int64_t>& sizes() const { return sizes_; }
  /// Product of the extents, or nothing if an extent is negative or the product overflows int64.
  [[nodiscard]] std::optional<int64_t> checked_count() const;
  /// Product of the extents. Throws InternalError on overflow.
  [[nodiscard]] int64_t count() const;
  [[nodiscard]] std::string to_string() const;  ///< "[2, 3]"

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> sizes_;
};

/// An axis-parallel block of a logical tensor: `offset` and `size` have the tensor's rank.
struct Box {
  Shape offset;
  Shape size;

  /// The box that is all of a tensor.
  [[nodiscard]] static Box whole(const Shape& shape);
  /// Rows [first, first + rows) of axis 0.
  [[nodiscard]] static Box rows(const Shape& shape, int64_t first, int64_t num_rows);
  [[nodiscard]] int64_t count() const { return size.count(); }
  /// Whether it lies inside a tensor of `shape`.
  [[nodiscard]] bool inside(const Shape& shape) const;
  /// The common block, or nothing if it is empty.
  [[nodiscard]] std::optional<Box> intersect(const Box& other) const;
  [[nodiscard]] std::string to_string() const;  ///< "[0:2, 3:5]"

  bool operator==(const Box&) const = default;
};

}  // namespace chiliad
