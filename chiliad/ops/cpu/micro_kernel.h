#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "chiliad/ops/cpu/simd.h"

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {

inline constexpr int64_t kTileRows = 12;
inline constexpr int64_t kTileColumns = 32;

/// The left factor of a tile: value (i, k) is at data[i * row + k * step].
struct TileLeft {
  const float* data = nullptr;
  int64_t row = 0;
  int64_t step = 0;
};
/// The right one: row k is 32 values at data + k * step.
struct TileRight {
  const float* data = nullptr;
  int64_t step = kTileColumns;
};

/// out[i * stride + j] (+)= sum over k; R rows, 16 columns: for the rest of a width.
template <int R, bool Add>
void multiply_narrow_tile(int64_t depth, TileLeft left, TileRight right, float* out, int64_t stride) {
  Lanes sums[R];
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) sums[i] = Add ? load(out + i * stride) : _mm512_setzero_ps();
  const float* a0 = left.data;
  const float* a3 = a0 + 3 * left.row;
  const float* a6 = a0 + 6 * left.row;
  const float* a9 = a0 + 9 * left.row;
  const float* b = right.data;
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes b0 = load(b);
    b += right.step;
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float* a = i < 3 ? a0 : i < 6 ? a3 : i < 9 ? a6 : a9;
      sums[i] = _mm512_fmadd_ps(all(a[(i % 3) * left.row]), b0, sums[i]);
    }
    a0 += left.step;
    a3 += left.step;
    a6 += left.step;
    a9 += left.step;
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) store(out + i * stride, sums[i]);
}

/// out[i * stride + j] (+)= sum over k; R rows, 32 columns.
template <int R, bool Add>
void multiply_tile(int64_t depth, TileLeft left, TileRight right, float* out, int64_t stride) {
  Lanes sums[R][2];  // registers
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    sums[i][0] = Add ? load(out + i * stride) : _mm512_setzero_ps();
    sums[i][1] = Add ? load(out + i * stride + kLanes) : _mm512_setzero_ps();
  }
  const float* a0 = left.data;  // four pointers and two offsets reach twelve rows
  const float* a3 = a0 + 3 * left.row;
  const float* a6 = a0 + 6 * left.row;
  const float* a9 = a0 + 9 * left.row;
  const float* b = right.data;
  for (int64_t k = 0; k < depth; ++k) {
    const Lanes b0 = load(b);
    const Lanes b1 = load(b + kLanes);
    b += right.step;
#pragma GCC unroll 12
    for (int i = 0; i < R; ++i) {
      const float* a = i < 3 ? a0 : i < 6 ? a3 : i < 9 ? a6 : a9;
      const Lanes x = all(a[(i % 3) * left.row]);
      sums[i][0] = _mm512_fmadd_ps(x, b0, sums[i][0]);
      sums[i][1] = _mm512_fmadd_ps(x, b1, sums[i][1]);
    }
    a0 += left.step;
    a3 += left.step;
    a6 += left.step;
    a9 += left.step;
  }
#pragma GCC unroll 12
  for (int i = 0; i < R; ++i) {
    store(out + i * stride, sums[i][0]);
    store(out + i * stride + kLanes, sums[i][1]);
  }
}

using TileKernel = void (*)(int64_t, TileLeft, TileRight, float*, int64_t);

template <bool Add>
inline constexpr std::array<TileKernel, kTileRows + 1> kTileKernels = {nullptr,
                                                                       &multiply_tile<1, Add>,
                                                                       &multiply_tile<2, Add>,
                                                                       &multiply_tile<3, Add>,
                                                                       &multiply_tile<4, Add>,
                                                                       &multiply_tile<5, Add>,
                                                                       &multiply_tile<6, Add>,
                                                                       &multiply_tile<7, Add>,
                                                                       &multiply_tile<8, Add>,
                                                                       &multiply_tile<9, Add>,
                                                                       &multiply_tile<10, Add>,
                                                                       &multiply_tile<11, Add>,
                                                                       &multiply_tile<12, Add>};
template <bool Add>
inline constexpr std::array<TileKernel, kTileRows + 1> kNarrowKernels = {nullptr,
                                                                         &multiply_narrow_tile<1, Add>,
                                                                         &multiply_narrow_tile<2, Add>,
                                                                         &multiply_narrow_tile<3, Add>,
                                                                         &multiply_narrow_tile<4, Add>,
                                                                         &multiply_narrow_tile<5, Add>,
                                                                         &multiply_narrow_tile<6, Add>,
                                                                         &multiply_narrow_tile<7, Add>,
                                                                         &multiply_narrow_tile<8, Add>,
                                                                         &multiply_narrow_tile<9, Add>,
                                                                         &multiply_narrow_tile<10, Add>,
                                                                         &multiply_narrow_tile<11, Add>,
                                                                         &multiply_narrow_tile<12, Add>};

/// A column of tiles: `rows` rows; `width` is 32, or 16.
inline void multiply_column(int64_t rows, int64_t depth, TileLeft left, TileRight right, float* out,
                            int64_t stride, bool add, int64_t width = kTileColumns) {
  const bool narrow = width < kTileColumns;
  const auto& kernels = add ? (narrow ? kNarrowKernels<true> : kTileKernels<true>)
                            : (narrow ? kNarrowKernels<false> : kTileKernels<false>);
  for (int64_t i = 0; i < rows; i += kTileRows) {
    kernels[static_cast<size_t>(std::min(kTileRows, rows - i))](
        depth, {left.data + i * left.row, left.row, left.step}, right, out + i * stride, stride);
  }
}

/// All columns of a product whose right factor has rows of `width` values, a multiple of 16.
inline void multiply_rows(int64_t rows, int64_t depth, TileLeft left, TileRight right, int64_t width,
                          float* out, int64_t stride, bool add) {
  for (int64_t column = 0; column < width; column += kTileColumns) {
    multiply_column(rows, depth, left, {right.data + column, right.step}, out + column, stride, add,
                    std::min(kTileColumns, width - column));
  }
}

inline Lanes pairs_low(Lanes x, Lanes y) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}
inline Lanes pairs_high(Lanes x, Lanes y) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(x), _mm512_castps_pd(y)));
}

/// 16 rows of 16 values become columns.
inline void transpose_tile(const float* from, int64_t from_stride, float* to, int64_t to_stride) {
  Lanes r[16];
  Lanes t[16];
  for (int i = 0; i < 16; ++i) r[i] = load(from + i * from_stride);
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 16; i += 4) {
    r[i] = pairs_low(t[i], t[i + 2]);
    r[i + 1] = pairs_high(t[i], t[i + 2]);
    r[i + 2] = pairs_low(t[i + 1], t[i + 3]);
    r[i + 3] = pairs_high(t[i + 1], t[i + 3]);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
  }
  for (int i = 0; i < 4; ++i) {
    store(to + i * to_stride, _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88));
    store(to + (i + 8) * to_stride, _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd));
    store(to + (i + 4) * to_stride, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88));
    store(to + (i + 12) * to_stride, _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd));
  }
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
