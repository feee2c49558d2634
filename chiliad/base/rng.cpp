#include "chiliad/base/rng.h"

#include <cmath>

#include "chiliad/base/error.h"

namespace chiliad {
namespace {

constexpr uint32_t kMul0 = 0xD2511F53U;
constexpr uint32_t kMul1 = 0xCD9E8D57U;
constexpr uint32_t kWeyl0 = 0x9E3779B9U;
constexpr uint32_t kWeyl1 = 0xBB67AE85U;

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = static_cast<uint64_t>(kMul0) * c[0];
    const uint64_t p1 = static_cast<uint64_t>(kMul1) * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k[0], static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k[1], static_cast<uint32_t>(p0)};
    k[0] += kWeyl0;
    k[1] += kWeyl1;
  }
  return c;
}

}  // namespace

Rng::Rng(std::initializer_list<uint64_t> key) {
  uint64_t h = 0x6368696C69616421ULL;
  for (const uint64_t part : key) h = mix64(h ^ mix64(part));
  key_ = {static_cast<uint32_t>(h), static_cast<uint32_t>(h >> 32)};
}

void Rng::refill() {
  block_ = philox({static_cast<uint32_t>(counter_), static_cast<uint32_t>(counter_ >> 32), 0U, 0U}, key_);
  ++counter_;
  used_ = 0;
}

uint32_t Rng::next_u32() {
  if (used_ == 4) refill();
  return block_[static_cast<size_t>(used_++)];
}

uint64_t Rng::next_u64() {
  const uint64_t low = next_u32();
  return low | (static_cast<uint64_t>(next_u32()) << 32);
}

float Rng::uniform() {
  return static_cast<float>(next_u32() >> 8) * 0x1.0p-24F;
}

double Rng::uniform_double() {
  return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
}

uint64_t Rng::below(uint64_t bound) {
  CHILIAD_CHECK_GT(bound, 0U);
  const uint64_t threshold = (0 - bound) % bound;
  for (;;) {
    const uint64_t x = next_u64();
    const unsigned __int128 product = static_cast<unsigned __int128>(x) * bound;
    if (static_cast<uint64_t>(product) >= threshold) return static_cast<uint64_t>(product >> 64);
  }
}

float Rng::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  constexpr float kTwoPi = 6.283185307179586F;
  const float u = (static_cast<float>(next_u32() >> 8) + 0.5F) * 0x1.0p-24F;  // (0, 1)
  const float radius = std::sqrt(-2.0F * std::log(u));
  const float angle = kTwoPi * uniform();
  spare_ = radius * std::sin(angle);
  has_spare_ = true;
  return radius * std::cos(angle);
}

void Rng::fill_normal(std::span<float> out) {
  for (float& value : out) value = normal();
}

}  // namespace chiliad
