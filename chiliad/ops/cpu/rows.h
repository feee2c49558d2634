#pragma once

#include <cstdint>

namespace chiliad::ops::cpu {

/// A matrix whose values are made in fp32 as they are read: converted, normalised, stacked.
class Rows {
 public:
  Rows() = default;
  virtual ~Rows() = default;
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  /// Values [first, first + count) of a row.
  virtual void read(int64_t row, int64_t first, int64_t count, float* out) const = 0;
  /// Where row 0 is in memory as fp32, if the matrix is; rows are `stride` apart.
  [[nodiscard]] virtual const float* memory(int64_t* /*stride*/) const { return nullptr; }
};

/// Takes rows of a product.
class RowSink {
 public:
  RowSink() = default;
  virtual ~RowSink() = default;
  RowSink(const RowSink&) = delete;
  RowSink& operator=(const RowSink&) = delete;

  /// Each value comes once; runs of columns are in no promised order, and come from several threads.
  virtual void write(int64_t row, int64_t first, int64_t count, const float* values) const = 0;
  /// Where the product itself may be made, as with Rows; then `write` is not called.
  [[nodiscard]] virtual float* memory(int64_t* /*stride*/) const { return nullptr; }
};

}  // namespace chiliad::ops::cpu
