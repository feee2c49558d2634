#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

/// Sixteen fp32 lanes of AVX-512 (F, BW, VL, DQ). Include this only in sources of kernels, between
/// CHILIAD_SIMD_BEGIN and CHILIAD_SIMD_END where functions use it; run them only where `has_kernels()`.

// GCC 12 warns of its own intrinsics.
#define CHILIAD_SIMD_BEGIN                                                                      \
  _Pragma("GCC push_options") _Pragma("GCC target(\"avx512f,avx512bw,avx512vl,avx512dq,fma\")") \
      _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wuninitialized\"")      \
          _Pragma("GCC diagnostic ignored \"-Wmaybe-uninitialized\"")
#define CHILIAD_SIMD_END _Pragma("GCC diagnostic pop") _Pragma("GCC pop_options")

CHILIAD_SIMD_BEGIN
namespace chiliad::ops::cpu {

/// Bits of a bf16 value: the upper half of an fp32 one.
struct Bf16 {
  uint16_t bits;
};

using Lanes = __m512;
inline constexpr int64_t kLanes = 16;

/// The first `count` (0 to 16) lanes.
inline __mmask16 first_lanes(int64_t count) {
  return static_cast<__mmask16>((1U << count) - 1U);
}

inline Lanes load(const float* from) {
  return _mm512_loadu_ps(from);
}
inline Lanes load(const Bf16* from) {
  const __m256i bits = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
/// Other lanes are 0.
inline Lanes load(const float* from, __mmask16 lanes) {
  return _mm512_maskz_loadu_ps(lanes, from);
}
inline Lanes load(const Bf16* from, __mmask16 lanes) {
  const __m256i bits = _mm256_maskz_loadu_epi16(lanes, from);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}

/// Rounded to the nearest, ties to even; a NaN stays one.
inline __m256i to_bf16(Lanes x) {
  const __m512i bits = _mm512_castps_si512(x);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
  const __m512i rounded = _mm512_mask_mov_epi32(up, nan, _mm512_set1_epi32(0x7fc00000));
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
}

inline void store(float* to, Lanes x) {
  _mm512_storeu_ps(to, x);
}
inline void store(Bf16* to, Lanes x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(x));
}
inline void store(float* to, Lanes x, __mmask16 lanes) {
  _mm512_mask_storeu_ps(to, lanes, x);
}
inline void store(Bf16* to, Lanes x, __mmask16 lanes) {
  _mm256_mask_storeu_epi16(to, lanes, to_bf16(x));
}

/// apply(first, mask) for every 16 of `count`.
template <typename Apply>
inline void for_lanes(int64_t count, const Apply& apply) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) apply(i, static_cast<__mmask16>(0xffff));
  if (i < count) apply(i, first_lanes(count - i));
}

inline Lanes all(float x) {
  return _mm512_set1_ps(x);
}

/// e^x to 2 units in the last place; 0 and infinity at the ends.
inline Lanes exp(Lanes x) {
  const Lanes turns = _mm512_roundscale_ps(_mm512_mul_ps(x, all(1.44269504F)), 8);
  Lanes rest = _mm512_fnmadd_ps(turns, all(0.693359375F), x);
  rest = _mm512_fnmadd_ps(turns, all(-2.12194440e-4F), rest);
  Lanes sum = all(1.9875691500e-4F);
  sum = _mm512_fmadd_ps(sum, rest, all(1.3981999507e-3F));
  sum = _mm512_fmadd_ps(sum, rest, all(8.3334519073e-3F));
  sum = _mm512_fmadd_ps(sum, rest, all(4.1665795894e-2F));
  sum = _mm512_fmadd_ps(sum, rest, all(1.6666665459e-1F));
  sum = _mm512_fmadd_ps(sum, rest, all(5.0000001201e-1F));
  sum = _mm512_fmadd_ps(sum, _mm512_mul_ps(rest, rest), _mm512_add_ps(rest, all(1.0F)));
  // Beyond the range the rest is not small: the ends are set.
  Lanes result = _mm512_scalef_ps(sum, turns);
  result = _mm512_mask_mov_ps(result, _mm512_cmp_ps_mask(x, all(-104.0F), _CMP_LT_OQ), _mm512_setzero_ps());
  return _mm512_mask_mov_ps(result, _mm512_cmp_ps_mask(x, all(89.0F), _CMP_GT_OQ),
                            all(std::bit_cast<float>(0x7f800000U)));
}

/// Constants of the tanh approximation of gelu: gelu(x) = x / (1 + e^(-2 u)), u = root (x + cube x^3).
inline constexpr float kGeluRoot = 0.7978845608028654F;
inline constexpr float kGeluCube = 0.044715F;

/// 1 / (1 + e^(-2 u)).
inline Lanes gelu_share(Lanes x) {
  const Lanes square = _mm512_mul_ps(x, x);
  const Lanes inner = _mm512_fmadd_ps(square, all(-2.0F * kGeluRoot * kGeluCube), all(-2.0F * kGeluRoot));
  return _mm512_div_ps(all(1.0F), _mm512_add_ps(all(1.0F), exp(_mm512_mul_ps(inner, x))));
}
inline Lanes gelu(Lanes x) {
  return _mm512_mul_ps(x, gelu_share(x));
}
/// Its derivative.
inline Lanes gelu_slope(Lanes x) {
  const Lanes share = gelu_share(x);
  const Lanes square = _mm512_mul_ps(x, x);
  const Lanes slope = _mm512_fmadd_ps(square, all(6.0F * kGeluRoot * kGeluCube), all(2.0F * kGeluRoot));
  const Lanes rest = _mm512_fnmadd_ps(share, share, share);  // share (1 - share)
  return _mm512_fmadd_ps(_mm512_mul_ps(x, rest), slope, share);
}

/// Sum of the lanes in a fixed order.
inline float sum(Lanes x) {
  return _mm512_reduce_add_ps(x);
}
inline float largest(Lanes x) {
  return _mm512_reduce_max_ps(x);
}

}  // namespace chiliad::ops::cpu
CHILIAD_SIMD_END
