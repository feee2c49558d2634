#include "chiliad/ops/cpu/tensor_rows.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/ops/cpu/simd.h"

namespace chiliad::ops::cpu {

bool takes(const std::vector<at::Tensor>& tensors) {
  return (tensors.front().scalar_type() != at::kFloat || takes_fp32()) && takes_values(tensors);
}

bool takes_values(const std::vector<at::Tensor>& tensors) {
  if (!has_kernels()) return false;
  const auto type = tensors.front().scalar_type();
  if (type != at::kBFloat16 && type != at::kFloat) return false;
  return std::all_of(tensors.begin(), tensors.end(), [type](const at::Tensor& tensor) {
    return !tensor.defined() || (tensor.is_cpu() && tensor.scalar_type() == type);
  });
}

at::Tensor as_matrix(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)}).contiguous();
}

at::Tensor as_rows(const at::Tensor& x) {
  const bool whole = x.stride(-1) == 1 || x.size(-1) == 1;
  if (x.dim() == 2) return whole ? x : x.contiguous();
  if (x.dim() != 3) return as_matrix(x);
  const bool regular = x.size(0) == 1 || x.stride(0) == x.size(1) * x.stride(1);
  if (!whole || !regular) return as_matrix(x);
  return x.as_strided({x.size(0) * x.size(1), x.size(2)}, {x.stride(1), 1});
}

Matrix::Matrix(const at::Tensor& tensor)
    : data(tensor.data_ptr()),
      is_bf16(tensor.scalar_type() == at::kBFloat16),
      rows(tensor.size(0)),
      columns(tensor.size(1)) {
  CHILIAD_CHECK(tensor.dim() == 2 && tensor.is_contiguous());
  CHILIAD_CHECK(is_bf16 || tensor.scalar_type() == at::kFloat);
}

namespace {

std::vector<Matrix> matrices_of(const std::vector<at::Tensor>& tensors) {
  std::vector<Matrix> matrices;
  for (const auto& tensor : tensors) {
    matrices.emplace_back(tensor);
    CHILIAD_CHECK_EQ(matrices.back().columns, matrices.front().columns);
    CHILIAD_CHECK_EQ(matrices.back().rows, matrices.front().rows);
    CHILIAD_CHECK_EQ(matrices.back().is_bf16, matrices.front().is_bf16);
  }
  return matrices;
}

float* memory_of(const Matrix& matrix, int64_t* stride) {
  if (matrix.is_bf16) return nullptr;
  *stride = matrix.columns;
  return static_cast<float*>(matrix.data);
}

/// The same of several one below the other, which have no memory together.
float* memory_of(const std::vector<Matrix>& matrices, int64_t* stride) {
  return matrices.size() == 1 ? memory_of(matrices.front(), stride) : nullptr;
}

/// apply(matrix, column, begin, count) for the parts of columns [first, first + count).
template <typename Apply>
void for_columns(const std::vector<Matrix>& matrices, int64_t first, int64_t count, const Apply& apply) {
  const int64_t width = matrices.front().columns;
  for (int64_t done = 0; done < count;) {
    const int64_t column = (first + done) % width;
    const int64_t part = std::min(count - done, width - column);
    apply(matrices[static_cast<size_t>((first + done) / width)], column, done, part);
    done += part;
  }
}

}  // namespace
}  // namespace chiliad::ops::cpu

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {
namespace {

template <typename T>
void read_from(const T* from, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) { store(out + i, load(from + i, lanes), lanes); });
}
template <typename T>
void write_to(T* to, int64_t count, const float* values) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) { store(to + i, load(values + i, lanes), lanes); });
}
template <typename T>
void read_gelu(const T* from, int64_t count, float* out) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) { store(out + i, gelu(load(from + i, lanes)), lanes); });
}
template <typename T>
void write_slope(T* to, const T* inner, int64_t count, const float* values) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    store(to + i, _mm512_mul_ps(load(values + i, lanes), gelu_slope(load(inner + i, lanes))), lanes);
  });
}

void add_values(float* to, int64_t count, const float* values) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    store(to + i, _mm512_add_ps(load(to + i, lanes), load(values + i, lanes)), lanes);
  });
}

template <typename T>
void write_sum(T* to, int64_t count, const float* values, const float* more) {
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    store(to + i, _mm512_add_ps(load(values + i, lanes), load(more + i, lanes)), lanes);
  });
}

/// apply(pointer to value `begin`) with the matrix's type.
template <typename Apply>
void at_value(const Matrix& matrix, int64_t begin, const Apply& apply) {
  if (matrix.is_bf16) {
    apply(static_cast<Bf16*>(matrix.data) + begin);
  } else {
    apply(static_cast<float*>(matrix.data) + begin);
  }
}

}  // namespace

void read_values(const Matrix& matrix, int64_t begin, int64_t count, float* out) {
  at_value(matrix, begin, [&](const auto* from) { read_from(from, count, out); });
}

void write_values(const Matrix& matrix, int64_t begin, int64_t count, const float* values) {
  at_value(matrix, begin, [&](auto* to) { write_to(to, count, values); });
}

void TensorRows::read(int64_t row, int64_t first, int64_t count, float* out) const {
  read_values(matrix_, row * matrix_.columns + first, count, out);
}

const float* TensorRows::memory(int64_t* stride) const {
  return memory_of(matrix_, stride);
}

StackedRows::StackedRows(const std::vector<at::Tensor>& tensors) : matrices_(matrices_of(tensors)) {}

void StackedRows::read(int64_t row, int64_t first, int64_t count, float* out) const {
  const int64_t height = matrices_.front().rows;
  const Matrix& matrix = matrices_[static_cast<size_t>(row / height)];
  read_values(matrix, row % height * matrix.columns + first, count, out);
}

const float* StackedRows::memory(int64_t* stride) const {
  return memory_of(matrices_, stride);
}

SideBySideRows::SideBySideRows(const std::vector<at::Tensor>& tensors, float* sums)
    : matrices_(matrices_of(tensors)), sums_(sums) {}

void SideBySideRows::read(int64_t row, int64_t first, int64_t count, float* out) const {
  for_columns(matrices_, first, count,
              [&](const Matrix& matrix, int64_t column, int64_t begin, int64_t part) {
                read_values(matrix, row * matrix.columns + column, part, out + begin);
              });
  if (sums_ != nullptr) add_values(sums_ + first, count, out);
}

const float* SideBySideRows::memory(int64_t* stride) const {
  return sums_ == nullptr ? memory_of(matrices_, stride) : nullptr;
}

void GeluRows::read(int64_t row, int64_t first, int64_t count, float* out) const {
  at_value(matrix_, row * matrix_.columns + first, [&](const auto* from) { read_gelu(from, count, out); });
}

TensorSink::TensorSink(const std::vector<at::Tensor>& tensors, const float* bias)
    : matrices_(matrices_of(tensors)), bias_(bias) {}

void TensorSink::write(int64_t row, int64_t first, int64_t count, const float* values) const {
  for_columns(matrices_, first, count,
              [&](const Matrix& matrix, int64_t column, int64_t begin, int64_t part) {
                at_value(matrix, row * matrix.columns + column, [&](auto* to) {
                  if (bias_ != nullptr) {
                    write_sum(to, part, values + begin, bias_ + first + begin);
                  } else {
                    write_to(to, part, values + begin);
                  }
                });
              });
}

float* TensorSink::memory(int64_t* stride) const {
  return bias_ == nullptr ? memory_of(matrices_, stride) : nullptr;
}

StackedSink::StackedSink(const std::vector<at::Tensor>& tensors) : matrices_(matrices_of(tensors)) {}

void StackedSink::write(int64_t row, int64_t first, int64_t count, const float* values) const {
  const int64_t height = matrices_.front().rows;
  const Matrix& matrix = matrices_[static_cast<size_t>(row / height)];
  write_values(matrix, row % height * matrix.columns + first, count, values);
}

float* StackedSink::memory(int64_t* stride) const {
  return memory_of(matrices_, stride);
}

void GeluSlopeSink::write(int64_t row, int64_t first, int64_t count, const float* values) const {
  const int64_t begin = row * out_.columns + first;
  at_value(out_, begin, [&](auto* to) {
    using Value = std::remove_pointer_t<decltype(to)>;
    write_slope(to, static_cast<const Value*>(inner_.data) + begin, count, values);
  });
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
