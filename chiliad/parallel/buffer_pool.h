#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace chiliad::parallel {

/// Flat fp32 buffers that are used again: whole parameters and gradients of the layers that are at work. Not
/// thread-safe: one rank's thread.
class BufferPool {
 public:
  /// A buffer of at least `count` values, contents undefined.
  [[nodiscard]] at::Tensor take(int64_t count);
  void give(at::Tensor buffer);
  /// Bytes in all buffers, taken or free.
  [[nodiscard]] int64_t num_bytes() const { return num_bytes_; }

 private:
  std::vector<at::Tensor> free_;
  int64_t num_bytes_ = 0;
};

}  // namespace chiliad::parallel
