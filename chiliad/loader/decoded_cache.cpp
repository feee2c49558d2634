#include "chiliad/loader/decoded_cache.h"

#include <cstring>

namespace chiliad::loader {

bool DecodedCache::copy_to(const PictureKey& key, std::span<std::byte> out) {
  if (capacity_ == 0) return false;
  std::lock_guard lock(mutex_);
  const auto found = by_key_.find(key);
  if (found == by_key_.end() || found->second->pixels.size() != out.size()) return false;
  entries_.splice(entries_.begin(), entries_, found->second);
  std::memcpy(out.data(), found->second->pixels.data(), out.size());
  return true;
}

void DecodedCache::put(const PictureKey& key, std::span<const std::byte> pixels) {
  if (static_cast<int64_t>(pixels.size()) > capacity_) return;
  Entry entry{key, {pixels.begin(), pixels.end()}};
  std::lock_guard lock(mutex_);
  if (by_key_.contains(key)) return;
  entries_.push_front(std::move(entry));
  by_key_[key] = entries_.begin();
  num_bytes_ += static_cast<int64_t>(pixels.size());
  while (num_bytes_ > capacity_) {
    num_bytes_ -= static_cast<int64_t>(entries_.back().pixels.size());
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

int64_t DecodedCache::num_bytes() const {
  std::lock_guard lock(mutex_);
  return num_bytes_;
}

}  // namespace chiliad::loader
