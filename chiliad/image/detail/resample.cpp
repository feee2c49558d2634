// Compiled once for each instruction set that Highway knows; the best one that the machine has is taken at
// run time. All of them give the same integers.
#include "chiliad/image/detail/resample.h"

#include <cstring>

#include "chiliad/image/detail/resample_plain.h"

// AVX-512 with products that add at once, which Highway leaves out unless asked.
#define HWY_WANT_AVX3_DL
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "chiliad/image/detail/resample.cpp"
#include <hwy/foreach_target.h>
// highway.h needs foreach_target.h before it.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
#if HWY_TARGET == HWY_AVX3_DL && defined(__GNUC__) && !defined(__clang__)
#define CHILIAD_ADDING_PRODUCTS 1
#pragma GCC target("avx512vnni")  // which Highway looks for in the machine, but does not switch on
#else
#define CHILIAD_ADDING_PRODUCTS 0
#endif
namespace chiliad::image::detail {
namespace HWY_NAMESPACE {
#if HWY_TARGET == HWY_SCALAR
using plain::put_in_block;
using plain::resample_block;
using plain::resample_down;
using plain::take_rows;
#else
namespace hn = hwy::HWY_NAMESPACE;

// Wider vectors only where narrowing works by blocks of 128 bits, as the pass down needs it.
#if HWY_ARCH_X86
using Samples = hn::ScalableTag<int16_t>;
#else
using Samples = hn::CappedTag<int16_t, 8>;
#endif
using Sums = hn::RepartitionToWide<Samples>;
using Bytes16 = hn::FixedTag<uint8_t, 16>;

/// Sums of the products of neighbouring samples, collected in two parts whose meaning is the machine's.
struct PairSums {
  hn::Vec<Sums> even;
  hn::Vec<Sums> odd;

  HWY_INLINE void add(hn::Vec<Samples> samples, hn::Vec<Samples> weights) {
#if CHILIAD_ADDING_PRODUCTS
    even.raw = _mm512_dpwssd_epi32(even.raw, samples.raw, weights.raw);
#else
    even = hn::ReorderWidenMulAccumulate(Sums(), samples, weights, even, odd);
#endif
  }
  [[nodiscard]] HWY_INLINE hn::Vec<Sums> total() const {
    return hn::RearrangeToOddPlusEven(even, odd);
  }
};

HWY_INLINE PairSums no_sums() {
  return {hn::Zero(Sums()), hn::Zero(Sums())};
}

HWY_INLINE hn::Vec<Samples> both_halves(int32_t pair) {
  return hn::BitCast(Samples(), hn::Set(Sums(), pair));
}

HWY_INLINE hn::Vec<Sums> to_level(const PairSums& high, const PairSums& low) {
  const Sums d;
  const auto sum = hn::Add(hn::ShiftLeft<kLowBits>(high.total()), low.total());
  return hn::ShiftRight<kWeightBits>(hn::Add(sum, hn::Set(d, 1 << (kWeightBits - 1))));
}

HWY_INLINE void put_four(hn::Vec<Bytes16> rgb, int16_t* to) {
  constexpr uint8_t kNone = 0x80;
  alignas(16) static constexpr uint8_t kFirstPair[16] = {0, kNone, 3, kNone, 1,     kNone, 4,     kNone,
                                                         2, kNone, 5, kNone, kNone, kNone, kNone, kNone};
  alignas(16) static constexpr uint8_t kSecondPair[16] = {6, kNone, 9,  kNone, 7,     kNone, 10,    kNone,
                                                          8, kNone, 11, kNone, kNone, kNone, kNone, kNone};
  const Bytes16 d;
  auto* bytes = reinterpret_cast<uint8_t*>(to);
  hn::Store(hn::TableLookupBytesOr0(rgb, hn::Load(d, kFirstPair)), d, bytes);
  hn::Store(hn::TableLookupBytesOr0(rgb, hn::Load(d, kSecondPair)), d,
            bytes + kBlockRows * kPairSamples * sizeof(int16_t));
}

/// Six pixels at least must be there: four are read as 16 bytes of which 12 count.
HWY_INLINE void put_group(const uint8_t* const* rows, int num_rows, int64_t at, int16_t* to) {
  for (int row = 0; row < num_rows; ++row)
    put_four(hn::LoadU(Bytes16(), rows[row] + at), to + row * kPairSamples);
}

void put_in_block(const uint8_t* const* rows, int num_rows, int32_t num_pixels, int16_t* block) {
  int32_t x = 0;
  for (; num_pixels - x >= 6; x += 4, block += 2 * kBlockRows * kPairSamples)
    put_group(rows, num_rows, int64_t{3} * x, block);
  for (; x < num_pixels; x += 4, block += 2 * kBlockRows * kPairSamples) {
    for (int row = 0; row < num_rows; ++row) {
      alignas(16) uint8_t last[16] = {};
      std::memcpy(last, rows[row] + int64_t{3} * x,
                  3 * static_cast<size_t>(num_pixels - x < 4 ? num_pixels - x : 4));
      put_four(hn::Load(Bytes16(), last), block + row * kPairSamples);
    }
  }
}

/// Two vectors of samples of one output; `block` is where they begin in its first pair.
HWY_INLINE void resample_part(const int16_t* block, const int32_t* high, const int32_t* low,
                              int32_t num_pairs, uint8_t* out) {
  const Samples d;
  const auto lanes = hn::Lanes(d);
  PairSums highs[2] = {no_sums(), no_sums()};
  PairSums lows[2] = {no_sums(), no_sums()};
  for (int32_t p = 0; p < num_pairs; ++p, block += kBlockRows * kPairSamples) {
    const auto high_weights = both_halves(high[p]);
    const auto low_weights = both_halves(low[p]);
    for (int v = 0; v < 2; ++v) {
      const auto samples = hn::Load(d, block + static_cast<size_t>(v) * lanes);
      highs[v].add(samples, high_weights);
      lows[v].add(samples, low_weights);
    }
  }
  const hn::Rebind<uint8_t, Sums> bytes;
  for (int v = 0; v < 2; ++v)
    hn::StoreU(hn::DemoteTo(bytes, to_level(highs[v], lows[v])), bytes,
               out + static_cast<size_t>(v) * lanes / 2);
}

void resample_block(const int16_t* block, const TapPairs& pairs, uint8_t* out) {
  constexpr int kSamples = kBlockRows * kPairSamples;
  const auto step = static_cast<int>(2 * hn::Lanes(Samples()));
  const int32_t* high = pairs.high.data();
  const int32_t* low = pairs.low.data();
  const int32_t num_pairs = pairs.num_pairs;
  for (const int32_t first : pairs.first) {
    const int16_t* from = block + int64_t{first} / 2 * kSamples;
    for (int at = 0; at < kSamples; at += step) resample_part(from + at, high, low, num_pairs, out + at / 2);
    high += num_pairs;
    low += num_pairs;
    out += kSamples / 2;
  }
}

void take_rows(const uint8_t* block, int32_t num_pixels, int first_row, uint8_t* const rows[4]) {
  alignas(16) static constexpr uint8_t kPack[16] = {0,  1,  2,  4,  5,    6,    8,    9,
                                                    10, 12, 13, 14, 0x80, 0x80, 0x80, 0x80};
  const Bytes16 d;
  const hn::Repartition<uint32_t, Bytes16> d32;
  const hn::Repartition<uint64_t, Bytes16> d64;
  const auto pack = hn::Load(d, kPack);
  block += first_row * 4;
  for (int32_t x = 0; x < num_pixels; x += 4) {
    const int32_t count = num_pixels - x < 4 ? num_pixels - x : 4;
    hn::Vec<decltype(d32)> pixels[4];
    for (int32_t i = 0; i < 4; ++i) {
      const int32_t from = x + (i < count ? i : 0);
      pixels[i] = hn::BitCast(d32, hn::LoadU(d, block + int64_t{from} * kBlockRows * 4));
    }
    const auto a = hn::BitCast(d64, hn::InterleaveLower(d32, pixels[0], pixels[1]));
    const auto b = hn::BitCast(d64, hn::InterleaveLower(d32, pixels[2], pixels[3]));
    const auto c = hn::BitCast(d64, hn::InterleaveUpper(d32, pixels[0], pixels[1]));
    const auto e = hn::BitCast(d64, hn::InterleaveUpper(d32, pixels[2], pixels[3]));
    const hn::Vec<Bytes16> turned[4] = {
        hn::BitCast(d, hn::InterleaveLower(d64, a, b)), hn::BitCast(d, hn::InterleaveUpper(d64, a, b)),
        hn::BitCast(d, hn::InterleaveLower(d64, c, e)), hn::BitCast(d, hn::InterleaveUpper(d64, c, e))};
    const bool room = num_pixels - x >= 6;  // 16 bytes are written of which 12 count
    for (int r = 0; r < 4; ++r) {
      if (rows[r] == nullptr) continue;
      const auto packed = hn::TableLookupBytesOr0(turned[r], pack);
      if (room) {
        hn::StoreU(packed, d, rows[r] + 3 * int64_t{x});
      } else {
        alignas(16) uint8_t last[16];
        hn::Store(packed, d, last);
        std::memcpy(rows[r] + 3 * int64_t{x}, last, 3 * static_cast<size_t>(count));
      }
    }
  }
}

/// As many samples as a vector of 16 bits has, at byte `x` of the rows.
HWY_INLINE void down_at(const uint8_t* const* rows, int64_t x, const int32_t* high, const int32_t* low,
                        int32_t num_pairs, uint8_t* out) {
  const Samples d;
  const hn::Rebind<uint8_t, Samples> bytes;
  PairSums highs[2] = {no_sums(), no_sums()};
  PairSums lows[2] = {no_sums(), no_sums()};
  for (int32_t p = 0; p < num_pairs; ++p) {
    const auto a = hn::PromoteTo(d, hn::LoadU(bytes, rows[2 * p] + x));
    const auto b = hn::PromoteTo(d, hn::LoadU(bytes, rows[2 * p + 1] + x));
    const auto high_weights = both_halves(high[p]);
    const auto low_weights = both_halves(low[p]);
    const auto lower = hn::InterleaveLower(d, a, b);
    const auto upper = hn::InterleaveUpper(d, a, b);
    highs[0].add(lower, high_weights);
    lows[0].add(lower, low_weights);
    highs[1].add(upper, high_weights);
    lows[1].add(upper, low_weights);
  }
  const auto levels = hn::ReorderDemote2To(d, to_level(highs[0], lows[0]), to_level(highs[1], lows[1]));
  hn::StoreU(hn::DemoteTo(bytes, levels), bytes, out);
}

void resample_down(const uint8_t* const* rows, int64_t row_bytes, const int32_t* high, const int32_t* low,
                   int32_t num_pairs, uint8_t* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(Samples()));
  int64_t x = 0;
  for (; x + lanes <= row_bytes; x += lanes) down_at(rows, x, high, low, num_pairs, out + x);
  if (x == row_bytes) return;
  alignas(64) uint8_t last[HWY_MAX_BYTES];
  down_at(rows, x, high, low, num_pairs, last);
  std::memcpy(out + x, last, static_cast<size_t>(row_bytes - x));
}

#endif
}  // namespace HWY_NAMESPACE
}  // namespace chiliad::image::detail
HWY_AFTER_NAMESPACE();
#undef CHILIAD_ADDING_PRODUCTS

#if HWY_ONCE
namespace chiliad::image::detail {

HWY_EXPORT(put_in_block);
HWY_EXPORT(resample_block);
HWY_EXPORT(take_rows);
HWY_EXPORT(resample_down);

void put_in_block(const uint8_t* const* rows, int num_rows, int32_t num_pixels, int16_t* block) {
  HWY_DYNAMIC_DISPATCH(put_in_block)(rows, num_rows, num_pixels, block);
}
void resample_block(const int16_t* block, const TapPairs& pairs, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(resample_block)(block, pairs, out);
}
void take_rows(const uint8_t* block, int32_t num_pixels, int first_row, uint8_t* const rows[4]) {
  HWY_DYNAMIC_DISPATCH(take_rows)(block, num_pixels, first_row, rows);
}
void resample_down(const uint8_t* const* rows, int64_t row_bytes, const int32_t* high, const int32_t* low,
                   int32_t num_pairs, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(resample_down)(rows, row_bytes, high, low, num_pairs, out);
}

}  // namespace chiliad::image::detail
#endif
