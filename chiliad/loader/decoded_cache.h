#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <span>
#include <vector>

namespace chiliad::loader {

/// What a finished picture is a pure function of, beside the data set and its background colour.
struct PictureKey {
  int64_t sample = 0;
  int32_t bucket = 0;
  float crop_x = 0.5F;
  float crop_y = 0.5F;
  bool flip = false;
  auto operator<=>(const PictureKey&) const = default;
};

/// Finished pictures, kept up to a number of bytes; the ones not used for longest go first. Thread-safe.
class DecodedCache {
 public:
  /// capacity_bytes: of pixels; 0 keeps nothing.
  explicit DecodedCache(int64_t capacity_bytes) : capacity_(capacity_bytes) {}

  /// Copies the picture into `out` if it is held and has that size.
  [[nodiscard]] bool copy_to(const PictureKey& key, std::span<std::byte> out);
  /// Keeps a copy; a picture larger than the capacity is not kept.
  void put(const PictureKey& key, std::span<const std::byte> pixels);
  [[nodiscard]] int64_t num_bytes() const;

 private:
  struct Entry {
    PictureKey key;
    std::vector<std::byte> pixels;
  };

  const int64_t capacity_;
  mutable std::mutex mutex_;  // guards the rest
  std::list<Entry> entries_;  // used last first
  std::map<PictureKey, std::list<Entry>::iterator> by_key_;
  int64_t num_bytes_ = 0;
};

}  // namespace chiliad::loader
