#include "chiliad/base/hash.h"

#include <fmt/core.h>
#include <xxhash.h>

#include <bit>
#include <new>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad {
namespace {

uint64_t parse_hex64(std::string_view text) {
  uint64_t value = 0;
  for (const char c : text) {
    int digit = -1;
    if (c >= '0' && c <= '9') digit = c - '0';
    if (c >= 'a' && c <= 'f') digit = c - 'a' + 10;
    if (digit < 0) throw CorruptData("digest", fmt::format("expected hex digits, got '{}'", text));
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  return value;
}

XXH3_state_t* state_of(void* state) {
  return static_cast<XXH3_state_t*>(state);
}

}  // namespace

std::string Digest::hex() const {
  return fmt::format("{:016x}{:016x}", high, low);
}

Digest Digest::from_hex(std::string_view text) {
  if (text.size() != 32) throw CorruptData("digest", fmt::format("expected 32 hex digits, got '{}'", text));
  return {parse_hex64(text.substr(0, 16)), parse_hex64(text.substr(16))};
}

uint64_t hash64(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t hash64(std::string_view text) {
  return XXH3_64bits(text.data(), text.size());
}

Digest hash128(std::span<const std::byte> bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.high64, h.low64};
}

Hasher::Hasher() : state_(XXH3_createState()) {
  if (state_ == nullptr) throw std::bad_alloc();
  XXH3_128bits_reset(state_of(state_));
}

Hasher::~Hasher() {
  XXH3_freeState(state_of(state_));
}

Hasher::Hasher(Hasher&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}

Hasher& Hasher::operator=(Hasher&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Hasher& Hasher::add_bytes(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::add(uint64_t value) {
  static_assert(std::endian::native == std::endian::little);
  return add_bytes(as_bytes_of(value));
}

Hasher& Hasher::add(double value) {
  return add(std::bit_cast<uint64_t>(value));
}

Hasher& Hasher::add(std::string_view text) {
  add(static_cast<uint64_t>(text.size()));
  return add_bytes(std::as_bytes(std::span(text.data(), text.size())));
}

Digest Hasher::digest() const {
  const XXH128_hash_t h = XXH3_128bits_digest(state_of(state_));
  return {h.high64, h.low64};
}

}  // namespace chiliad
