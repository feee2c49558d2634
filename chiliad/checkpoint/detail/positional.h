#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "chiliad/base/dtype.h"
#include "chiliad/base/shape.h"

namespace chiliad::checkpoint::detail {

/// Elements of a box that follow each other in its tensor, in the box's row-major order.
struct Run {
  int64_t first = 0;  ///< index in the tensor's row-major order
  int64_t count = 0;
};

/// Walks the runs of a box.
class RunWalker {
 public:
  RunWalker(const Shape& shape, const Box& box);
  /// The next run; count 0 at the end.
  [[nodiscard]] Run next();

 private:
  std::vector<int64_t> extents_;  // of the axes outside of a run
  std::vector<int64_t> strides_;
  std::vector<int64_t> position_;
  int64_t first_ = 0;
  int64_t run_count_ = 0;
  int64_t runs_left_ = 0;
};

/// The positional digest (snapshot.h) of a box whose bytes come in parts. Each part holds whole elements.
class PositionalHasher {
 public:
  PositionalHasher(DType dtype, const Shape& shape, const Box& box);
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] uint64_t digest() const { return sum_; }

 private:
  RunWalker walker_;
  Run run_;
  int64_t element_bytes_;
  uint64_t sum_ = 0;
};

}  // namespace chiliad::checkpoint::detail
