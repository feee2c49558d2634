#include "chiliad/image/detail/resample.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace chiliad::image::detail {
namespace {

constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr int kBlock = 16;  // samples of a row at a time

template <typename T>
T load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

/// Weighted sum of the pixels of one output: lanes R, G, B and one that is dropped.
[[gnu::target("avx2")]] inline __m128i sum_pixels(const uint8_t* pixel, const int32_t* weights,
                                                  int32_t count) {
  const __m128i two_pixels = _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  const __m256i two_weights = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  __m256i pairs = _mm256_setzero_si256();
  int32_t k = 0;
  for (; k + 2 <= count; k += 2, pixel += 6) {
    const __m128i bytes = _mm_shuffle_epi8(_mm_cvtsi64_si128(load<int64_t>(pixel)), two_pixels);
    const __m128i weight = _mm_cvtsi64_si128(load<int64_t>(weights + k));
    const __m256i spread = _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(weight), two_weights);
    pairs = _mm256_add_epi32(pairs, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), spread));
  }
  __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  if (k < count) {
    const __m128i samples = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(load<int32_t>(pixel)));
    sum = _mm_add_epi32(sum, _mm_mullo_epi32(samples, _mm_set1_epi32(weights[k])));
  }
  return _mm_add_epi32(sum, _mm_set1_epi32(kHalf));
}

/// 16 sums to 16 samples; saturation is the clamp.
[[gnu::target("avx2")]] inline __m128i to_samples(__m256i low, __m256i high) {
  const __m256i words =
      _mm256_packs_epi32(_mm256_srai_epi32(low, kWeightBits), _mm256_srai_epi32(high, kWeightBits));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xd8);
  return _mm_packus_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
}

[[gnu::target("avx2")]] inline __m256i widen(const uint8_t* from) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(load<int64_t>(from)));
}

}  // namespace

bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2") != 0;
  return found;
}

[[gnu::target("avx2")]] void row_avx2(const uint8_t* from, uint8_t* to, const AxisWeights& axis) {
  const int32_t num_outputs = axis.num_outputs();
  const __m128i zero = _mm_setzero_si128();
  for (int32_t i = 0; i < num_outputs; ++i, to += 3) {
    const __m128i sum = sum_pixels(from + 3 * int64_t{axis.first[i]}, axis.of(i), axis.count[i]);
    const __m128i words = _mm_packs_epi32(_mm_srai_epi32(sum, kWeightBits), zero);
    const int32_t samples = _mm_cvtsi128_si32(_mm_packus_epi16(words, zero));
    std::memcpy(to, &samples, 3);
  }
}

[[gnu::target("avx2")]] int64_t column_avx2(const uint8_t* from, int64_t stride, uint8_t* to,
                                            int64_t row_bytes, const AxisWeights& axis, int32_t output) {
  const int32_t* weights = axis.of(output);
  const int32_t count = axis.count[output];
  from += stride * axis.first[output];
  int64_t x = 0;
  for (; x + kBlock <= row_bytes; x += kBlock) {
    __m256i low = _mm256_set1_epi32(kHalf);
    __m256i high = low;
    const uint8_t* row = from + x;
    for (int32_t k = 0; k < count; ++k, row += stride) {
      const __m256i weight = _mm256_set1_epi32(weights[k]);
      low = _mm256_add_epi32(low, _mm256_mullo_epi32(widen(row), weight));
      high = _mm256_add_epi32(high, _mm256_mullo_epi32(widen(row + 8), weight));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + x), to_samples(low, high));
  }
  return x;
}

}  // namespace chiliad::image::detail

#else

namespace chiliad::image::detail {

bool has_avx2() {
  return false;
}
void row_avx2(const uint8_t*, uint8_t*, const AxisWeights&) {}
int64_t column_avx2(const uint8_t*, int64_t, uint8_t*, int64_t, const AxisWeights&, int32_t) {
  return 0;
}

}  // namespace chiliad::image::detail

#endif
