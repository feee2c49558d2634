#include "chiliad/comm/part_sum.h"

#include <algorithm>

#include "chiliad/base/error.h"

// Sums alone, in a given order: every clone rounds alike, so the choice of instruction set changes no bit.
#define CHILIAD_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3")))

namespace chiliad::comm {
namespace {

constexpr int64_t kBlock = 2048;  // values of `out` that stay in the first cache while all parts are added

// A macro: an inline function is not inlined into clones, whose options differ.
#define CHILIAD_WIDEN(bits) __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16)

CHILIAD_WIDE void store(const float* __restrict part, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = part[i];
}
CHILIAD_WIDE void add(const float* __restrict part, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] += part[i];
}
CHILIAD_WIDE void store_two(const float* __restrict a, const float* __restrict b, int64_t count,
                            float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = a[i] + b[i];
}
CHILIAD_WIDE void store(const uint16_t* __restrict part, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] = CHILIAD_WIDEN(part[i]);
}
CHILIAD_WIDE void add(const uint16_t* __restrict part, int64_t count, float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) out[i] += CHILIAD_WIDEN(part[i]);
}
CHILIAD_WIDE void store_two(const uint16_t* __restrict a, const uint16_t* __restrict b, int64_t count,
                            float* __restrict out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = CHILIAD_WIDEN(a[i]) + CHILIAD_WIDEN(b[i]);
  }
}

template <typename Value>
void sum(std::span<const void* const> parts, int64_t count, float* out, bool accumulate) {
  const auto part = [&](size_t i) { return static_cast<const Value*>(parts[i]); };
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    const int64_t block = std::min(kBlock, count - begin);
    size_t next = 0;
    if (!accumulate && parts.size() >= 2) {
      store_two(part(0) + begin, part(1) + begin, block, out + begin);
      next = 2;
    } else if (!accumulate) {
      store(part(0) + begin, block, out + begin);
      next = 1;
    }
    for (; next < parts.size(); ++next) add(part(next) + begin, block, out + begin);
  }
}

}  // namespace

PartType part_type(const at::Tensor& tensor) {
  CHILIAD_CHECK(tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16);
  return tensor.scalar_type() == at::kFloat ? PartType::kF32 : PartType::kBF16;
}

void sum_parts(std::span<const void* const> parts, PartType type, int64_t count, float* out,
               bool accumulate) {
  if (type == PartType::kF32) {
    sum<float>(parts, count, out, accumulate);
  } else {
    sum<uint16_t>(parts, count, out, accumulate);
  }
}

}  // namespace chiliad::comm
