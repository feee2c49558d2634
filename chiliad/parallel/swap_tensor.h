#pragma once

#include <ATen/core/Tensor.h>

#include "chiliad/parallel/buffer_pool.h"

namespace chiliad::parallel {

/// A flat tensor whose memory comes and goes while views of it stay: autograd keeps views of parameters
/// from forward to backward, and sees the memory of the moment. Touching a view while there is no memory
/// throws.
class SwapTensor {
 public:
  SwapTensor(int64_t count, at::ScalarType type);

  /// The tensor to make views of.
  [[nodiscard]] const at::Tensor& base() const { return base_; }
  [[nodiscard]] bool has_memory() const { return memory_.defined(); }
  /// Takes memory from the pool, contents undefined.
  void attach(BufferPool& pool);
  void release(BufferPool& pool);
  /// Keeps `memory` (at least as long, of the same type, dense) for good.
  void attach(at::Tensor memory);

 private:
  at::Tensor base_;
  at::Tensor memory_;
};

}  // namespace chiliad::parallel
