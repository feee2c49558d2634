#include "chiliad/comm/shm/own_region.h"

#include "chiliad/base/error.h"

namespace chiliad::comm::detail {
namespace {

size_t padded(size_t num_bytes) {
  return (num_bytes + 63) / 64 * 64;
}

}  // namespace

std::byte* OwnRegion::keep(size_t num_bytes) {
  if (kept_used_ + padded(num_bytes) > kept_) return nullptr;
  std::byte* const data = at(kept_used_);
  kept_used_ += padded(num_bytes);
  return data;
}

std::optional<size_t> OwnRegion::offset_of(const void* data, size_t num_bytes) const {
  const auto* const begin = static_cast<const std::byte*>(data);
  const std::less_equal<const std::byte*> not_after;
  const auto* const end = memory_.data() + memory_.size();
  if (!not_after(memory_.data(), begin) || !not_after(begin + num_bytes, end)) return std::nullopt;
  return static_cast<size_t>(begin - memory_.data());
}

size_t OwnRegion::make_room(size_t num_bytes, const std::function<void()>& release_oldest) {
  const size_t needed = padded(num_bytes);
  CHILIAD_CHECK(needed <= ring_bytes());
  if (posted_.empty() || cursor_ + needed > memory_.size()) cursor_ = kept_;
  while (is_posted(cursor_, cursor_ + needed)) release_oldest();
  const size_t begin = cursor_;
  cursor_ += needed;
  return begin;
}

bool OwnRegion::is_posted(size_t begin, size_t end) const {
  for (const auto& posted : posted_) {
    if (begin < posted.end && posted.begin < end) return true;
  }
  return false;
}

}  // namespace chiliad::comm::detail
