#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace chiliad {

/// Counter-based random numbers (Philox4x32-10): a stream is a pure function of its key, so every draw of an
/// item can be named by (seed, epoch, item, purpose) and replayed anywhere. Not thread-safe; copy it or key
/// another one. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11.
class Rng {
 public:
  /// The key is a hash of all parts; equal parts give equal streams.
  explicit Rng(std::initializer_list<uint64_t> key);
  explicit Rng(uint64_t seed) : Rng({seed}) {}

  [[nodiscard]] uint32_t next_u32();
  [[nodiscard]] uint64_t next_u64();
  /// Uniform in [0, 1), 24 bits.
  [[nodiscard]] float uniform();
  /// Uniform in [0, 1), 53 bits.
  [[nodiscard]] double uniform_double();
  /// Uniform in [0, bound), unbiased (rejection). bound > 0.
  [[nodiscard]] uint64_t below(uint64_t bound);
  /// Standard normal (Box-Muller, both values used).
  [[nodiscard]] float normal();
  void fill_normal(std::span<float> out);

 private:
  void refill();

  std::array<uint32_t, 2> key_{};
  uint64_t counter_ = 0;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
  bool has_spare_ = false;
  float spare_ = 0.0F;
};

/// Purposes of draws, so that no two uses of one item's key share a stream. Values are part of the stored
/// format: append only.
enum class Draw : uint64_t {
  kOrder = 1,
  kCaption = 2,
  kCrop = 3,
  kFlip = 4,
  kTime = 5,
  kNoise = 6,
  kDropout = 7,
  kInit = 8,
  kSample = 9,
  kLatent = 10,  ///< an autoencoder's sample; the noise of diffusion on it is another draw
  kJitter = 11   ///< colours of a picture
};

/// splitmix64 finaliser: a bijective 64-bit mixer.
[[nodiscard]] constexpr uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace chiliad
