#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "chiliad/ops/cpu/rows.h"

namespace chiliad::ops::cpu {

/// True for tensors that the kernels take: on the CPU, all fp32 or all bf16, on a processor that has them.
[[nodiscard]] bool takes(const std::vector<at::Tensor>& tensors);

/// The same for what makes values from values and not products: there fp32 is taken on every processor with
/// the kernels.
[[nodiscard]] bool takes_values(const std::vector<at::Tensor>& tensors);

/// All but the last dimension as rows, dense.
[[nodiscard]] at::Tensor as_matrix(const at::Tensor& x);

/// [B, N, D] or [R, D] as rows that may lie apart, [R, D], without a copy where that can be.
[[nodiscard]] at::Tensor as_rows(const at::Tensor& x);

/// Dense 2-D memory of a tensor, fp32 or bf16.
struct Matrix {
  explicit Matrix(const at::Tensor& tensor);

  void* data;
  bool is_bf16;
  int64_t rows;
  int64_t columns;
};

/// Copies and converts.
void read_values(const Matrix& matrix, int64_t begin, int64_t count, float* out);
void write_values(const Matrix& matrix, int64_t begin, int64_t count, const float* values);

/// The rows of a tensor.
class TensorRows final : public Rows {
 public:
  explicit TensorRows(const at::Tensor& tensor) : matrix_(tensor) {}
  void read(int64_t row, int64_t first, int64_t count, float* out) const override;
  [[nodiscard]] const float* memory(int64_t* stride) const override;

 private:
  Matrix matrix_;
};

/// Tensors of equal width, one below the other.
class StackedRows final : public Rows {
 public:
  explicit StackedRows(const std::vector<at::Tensor>& tensors);
  void read(int64_t row, int64_t first, int64_t count, float* out) const override;
  [[nodiscard]] const float* memory(int64_t* stride) const override;

 private:
  std::vector<Matrix> matrices_;
};

/// Tensors of equal height and width, side by side. With `sums`, [sum of widths] zeros, each value that is
/// read is added to its column's: in row order, if every row is read once and in order.
class SideBySideRows final : public Rows {
 public:
  explicit SideBySideRows(const std::vector<at::Tensor>& tensors, float* sums = nullptr);
  void read(int64_t row, int64_t first, int64_t count, float* out) const override;
  [[nodiscard]] const float* memory(int64_t* stride) const override;

 private:
  std::vector<Matrix> matrices_;
  float* sums_;
};

/// gelu of a tensor's values.
class GeluRows final : public Rows {
 public:
  explicit GeluRows(const at::Tensor& tensor) : matrix_(tensor) {}
  void read(int64_t row, int64_t first, int64_t count, float* out) const override;

 private:
  Matrix matrix_;
};

/// Takes the columns of tensors of equal width side by side, a bias added to each where there are some
/// (fp32, as wide as all).
class TensorSink final : public RowSink {
 public:
  explicit TensorSink(const std::vector<at::Tensor>& tensors, const float* bias = nullptr);
  void write(int64_t row, int64_t first, int64_t count, const float* values) const override;
  [[nodiscard]] float* memory(int64_t* stride) const override;

 private:
  std::vector<Matrix> matrices_;
  const float* bias_;
};

/// Takes the rows of tensors one below the other.
class StackedSink final : public RowSink {
 public:
  explicit StackedSink(const std::vector<at::Tensor>& tensors);
  void write(int64_t row, int64_t first, int64_t count, const float* values) const override;
  [[nodiscard]] float* memory(int64_t* stride) const override;

 private:
  std::vector<Matrix> matrices_;
};

/// Takes values times the slope of gelu at `inner`.
class GeluSlopeSink final : public RowSink {
 public:
  GeluSlopeSink(const at::Tensor& out, const at::Tensor& inner) : out_(out), inner_(inner) {}
  void write(int64_t row, int64_t first, int64_t count, const float* values) const override;

 private:
  Matrix out_;
  Matrix inner_;
};

}  // namespace chiliad::ops::cpu
