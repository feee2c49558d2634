#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "chiliad/comm/group.h"

namespace chiliad::parallel {

/// Flat buffers of one type that are used again: whole parameters and gradients of the layers that are at
/// work. Not thread-safe: one rank's thread.
class BufferPool {
 public:
  explicit BufferPool(at::ScalarType type = at::kFloat) : type_(type) {}
  /// Buffers that calls of `group` (which outlives the pool) read in place, where it has memory for that; all
  /// of `size` values, for that memory is given out once.
  BufferPool(comm::Group& group, int64_t size, at::ScalarType type)
      : group_(&group), size_(size), type_(type) {}

  /// A buffer of at least `count` values, contents undefined. Waits until peers have read what it held.
  [[nodiscard]] at::Tensor take(int64_t count);
  void give(at::Tensor buffer);
  /// Bytes in all buffers, taken or free.
  [[nodiscard]] int64_t num_bytes() const { return num_bytes_; }

 private:
  [[nodiscard]] at::Tensor make(int64_t count) const;

  comm::Group* group_ = nullptr;
  int64_t size_ = 0;
  at::ScalarType type_;
  std::vector<at::Tensor> free_;
  int64_t num_bytes_ = 0;
};

}  // namespace chiliad::parallel
