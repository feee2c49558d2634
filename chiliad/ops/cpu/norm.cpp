#include "chiliad/ops/cpu/norm.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/ops/cpu/parallel.h"
#include "chiliad/ops/cpu/simd.h"

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {
namespace {

constexpr int64_t kRowsAPart = 32;

enum Slot { kX = 5, kG, kShift, kScale };

template <typename T>
T* row_of(const Matrix& matrix, int64_t row) {
  return static_cast<T*>(matrix.data) + row * matrix.columns;
}

/// apply(T{}) with the value type of the matrix.
template <typename Apply>
void with_type(const Matrix& matrix, const Apply& apply) {
  if (matrix.is_bf16) {
    apply(Bf16{});
  } else {
    apply(float{});
  }
}

template <typename T>
void moments_of_row(const T* x, int64_t count, float eps, float* out) {
  Lanes total = _mm512_setzero_ps();
  for_lanes(count, [&](int64_t i, __mmask16 lanes) { total = _mm512_add_ps(total, load(x + i, lanes)); });
  const float mean = sum(total) / static_cast<float>(count);
  Lanes squares = _mm512_setzero_ps();
  for_lanes(count, [&](int64_t i, __mmask16 lanes) {
    const Lanes apart = _mm512_maskz_sub_ps(lanes, load(x + i, lanes), all(mean));
    squares = _mm512_fmadd_ps(apart, apart, squares);
  });
  out[0] = mean;
  out[1] = 1.0F / __builtin_sqrtf(sum(squares) / static_cast<float>(count) + eps);
}

/// What a run of rows with one shift and scale shares.
struct NormItem {
  int64_t first;
  int64_t count;
  int64_t width;
};

template <typename T>
void norm_row_backward(const T* x, const T* scale, const float* gradient, const float* moments, int64_t width,
                       T* of_x, float* of_shift, float* of_scale) {
  const Lanes mean = all(moments[0]);
  const Lanes root = all(moments[1]);
  Lanes total = _mm512_setzero_ps();
  Lanes along = _mm512_setzero_ps();
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes normed = _mm512_maskz_mul_ps(lanes, _mm512_sub_ps(load(x + i, lanes), mean), root);
    const Lanes upstream = load(gradient + i, lanes);
    store(of_shift + i, _mm512_add_ps(load(of_shift + i, lanes), upstream), lanes);
    store(of_scale + i, _mm512_fmadd_ps(upstream, normed, load(of_scale + i, lanes)), lanes);
    const Lanes inner = _mm512_fmadd_ps(upstream, load(scale + i, lanes), upstream);
    total = _mm512_add_ps(total, inner);
    along = _mm512_fmadd_ps(inner, normed, along);
  });
  const Lanes share = all(1.0F / static_cast<float>(width));
  const Lanes of_mean = _mm512_mul_ps(all(sum(total)), share);
  const Lanes of_root = _mm512_mul_ps(all(sum(along)), share);
  for_lanes(width, [&](int64_t i, __mmask16 lanes) {
    const Lanes normed = _mm512_mul_ps(_mm512_sub_ps(load(x + i, lanes), mean), root);
    const Lanes upstream = load(gradient + i, lanes);
    const Lanes inner = _mm512_fmadd_ps(upstream, load(scale + i, lanes), upstream);
    const Lanes rest = _mm512_fnmadd_ps(normed, of_root, _mm512_sub_ps(inner, of_mean));
    store(of_x + i, _mm512_mul_ps(rest, root), lanes);
  });
}

}  // namespace

RowRuns::RowRuns(int64_t rows, int64_t items, const std::vector<int64_t>& lengths) : count_(items) {
  if (lengths.empty()) {
    length_ = rows / items;
    CHILIAD_CHECK_EQ(length_ * items, rows);
    return;
  }
  CHILIAD_CHECK_EQ(static_cast<int64_t>(lengths.size()), items);
  begins_.push_back(0);
  for (size_t item = 0; item < lengths.size(); ++item) {
    begins_.push_back(begins_.back() + lengths[item]);
    items_.insert(items_.end(), static_cast<size_t>(lengths[item]), static_cast<int32_t>(item));
  }
  CHILIAD_CHECK_EQ(begins_.back(), rows);
}

at::Tensor row_moments(const at::Tensor& x, double eps) {
  const at::Tensor moments = at::empty({x.size(0), 2}, x.options().dtype(at::kFloat));
  const Matrix from(x);
  const Matrix to(moments);
  with_type(from, [&](auto type) {
    using T = decltype(type);
    for_each_part((from.rows + kRowsAPart - 1) / kRowsAPart, [&](int64_t part) {
      const int64_t end = std::min(from.rows, (part + 1) * kRowsAPart);
      for (int64_t row = part * kRowsAPart; row < end; ++row)
        moments_of_row(row_of<T>(from, row), from.columns, static_cast<float>(eps), row_of<float>(to, row));
    });
  });
  return moments;
}

NormRows::NormRows(const NormInput& input, const at::Tensor& moments)
    : x_(input.x),
      shift_(input.shift),
      scale_(input.scale),
      moments_(moments),
      runs_(x_.rows, shift_.rows, input.lengths) {}

void NormRows::read(int64_t row, int64_t first, int64_t count, float* out) const {
  const int64_t item = runs_.item_of(row);
  const float* moments = row_of<float>(moments_, row);
  const Lanes mean = all(moments[0]);
  const Lanes root = all(moments[1]);
  with_type(x_, [&](auto type) {
    using T = decltype(type);
    const T* x = row_of<T>(x_, row) + first;
    const T* shift = row_of<T>(shift_, item) + first;
    const T* scale = row_of<T>(scale_, item) + first;
    for_lanes(count, [&](int64_t i, __mmask16 lanes) {
      const Lanes normed = _mm512_mul_ps(_mm512_sub_ps(load(x + i, lanes), mean), root);
      const Lanes moved = _mm512_add_ps(normed, load(shift + i, lanes));
      store(out + i, _mm512_fmadd_ps(normed, load(scale + i, lanes), moved), lanes);
    });
  });
}

at::Tensor norm_forward(const NormInput& input, const at::Tensor& moments) {
  const at::Tensor out = at::empty_like(input.x);
  const NormRows rows(input, moments);
  const Matrix to(out);
  for_each_part((to.rows + kRowsAPart - 1) / kRowsAPart, [&](int64_t part) {
    const int64_t end = std::min(to.rows, (part + 1) * kRowsAPart);
    for (int64_t row = part * kRowsAPart; row < end; ++row) {
      if (!to.is_bf16) {
        rows.read(row, 0, to.columns, row_of<float>(to, row));
        continue;
      }
      float* wide = scratch(kX, to.columns);
      rows.read(row, 0, to.columns, wide);
      write_values(to, row * to.columns, to.columns, wide);
    }
  });
  return out;
}

NormInput norm_backward(const NormInput& input, const at::Tensor& moments, const at::Tensor& gradient) {
  const NormInput result{at::empty_like(input.x), at::empty_like(input.shift), at::empty_like(input.scale)};
  const Matrix x(input.x);
  const Matrix scale(input.scale);
  const Matrix upstream(gradient);
  const Matrix of_rows(moments);
  const Matrix of_x(result.x);
  const Matrix of_shift(result.shift);
  const Matrix of_scale(result.scale);
  const RowRuns runs(x.rows, scale.rows, input.lengths);
  with_type(x, [&](auto type) {
    using T = decltype(type);
    for_each_part(scale.rows, [&](int64_t item) {
      float* shift_sums = scratch(kShift, x.columns);
      float* scale_sums = scratch(kScale, x.columns);
      std::fill(shift_sums, shift_sums + x.columns, 0.0F);
      std::fill(scale_sums, scale_sums + x.columns, 0.0F);
      for (int64_t row = runs.begin(item); row < runs.end(item); ++row) {
        norm_row_backward(row_of<T>(x, row), row_of<T>(scale, item), row_of<float>(upstream, row),
                          row_of<float>(of_rows, row), x.columns, row_of<T>(of_x, row), shift_sums,
                          scale_sums);
      }
      write_values(of_shift, item * x.columns, x.columns, shift_sums);
      write_values(of_scale, item * x.columns, x.columns, scale_sums);
    });
  });
  return result;
}

at::Tensor gate_forward(const at::Tensor& x, const at::Tensor& gate, const at::Tensor& y,
                        const std::vector<int64_t>& lengths) {
  const at::Tensor out = at::empty_like(x);
  const Matrix base(x);
  const Matrix share(gate);
  const Matrix more(y);
  const Matrix to(out);
  const RowRuns runs(base.rows, share.rows, lengths);
  with_type(base, [&](auto type) {
    using T = decltype(type);
    for_each_part((base.rows + kRowsAPart - 1) / kRowsAPart, [&](int64_t part) {
      const int64_t end = std::min(base.rows, (part + 1) * kRowsAPart);
      for (int64_t row = part * kRowsAPart; row < end; ++row) {
        const T* g = row_of<T>(share, runs.item_of(row));
        const T* a = row_of<T>(base, row);
        const T* b = row_of<T>(more, row);
        T* result = row_of<T>(to, row);
        for_lanes(base.columns, [&](int64_t i, __mmask16 lanes) {
          store(result + i, _mm512_fmadd_ps(load(g + i, lanes), load(b + i, lanes), load(a + i, lanes)),
                lanes);
        });
      }
    });
  });
  return out;
}

std::pair<at::Tensor, at::Tensor> gate_backward(const at::Tensor& gate, const at::Tensor& y,
                                                const at::Tensor& gradient,
                                                const std::vector<int64_t>& lengths) {
  const at::Tensor of_gate = at::empty_like(gate);
  const at::Tensor of_y = at::empty_like(y);
  const Matrix share(gate);
  const Matrix value(y);
  const Matrix upstream(gradient);
  const Matrix to_gate(of_gate);
  const Matrix to_y(of_y);
  const RowRuns runs(value.rows, share.rows, lengths);
  with_type(value, [&](auto type) {
    using T = decltype(type);
    for_each_part(share.rows, [&](int64_t item) {
      float* sums = scratch(kShift, value.columns);
      std::fill(sums, sums + value.columns, 0.0F);
      const T* g = row_of<T>(share, item);
      for (int64_t row = runs.begin(item); row < runs.end(item); ++row) {
        const T* a = row_of<T>(value, row);
        const T* up = row_of<T>(upstream, row);
        T* result = row_of<T>(to_y, row);
        for_lanes(value.columns, [&](int64_t i, __mmask16 lanes) {
          const Lanes u = load(up + i, lanes);
          store(sums + i, _mm512_fmadd_ps(u, load(a + i, lanes), load(sums + i, lanes)), lanes);
          store(result + i, _mm512_mul_ps(u, load(g + i, lanes)), lanes);
        });
      }
      write_values(to_gate, item * value.columns, value.columns, sums);
    });
  });
  return {of_gate, of_y};
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
