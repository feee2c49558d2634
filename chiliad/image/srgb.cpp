#include "chiliad/image/srgb.h"

#include <list>
#include <mutex>
#include <utility>

#include "chiliad/base/hash.h"
#include "chiliad/image/detail/icc_profile.h"
#include "chiliad/image/detail/srgb_transform.h"

namespace chiliad::image {

struct SrgbConverter::Kept {
  struct Entry {
    Digest profile;
    detail::Samples samples{};
    Found found;
  };

  const size_t max_entries;
  mutable std::mutex mutex{};  // guards all below
  std::list<Entry> entries{};  // used last, first
  int64_t num_made = 0;

  /// Null if it is not there.
  const Found* use(const Digest& profile, detail::Samples samples) {
    for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
      if (entry->profile != profile || entry->samples != samples) continue;
      entries.splice(entries.begin(), entries, entry);
      return &entries.front().found;
    }
    return nullptr;
  }
};

SrgbConverter::SrgbConverter(size_t max_profiles) : kept_(new Kept{max_profiles}) {}
SrgbConverter::~SrgbConverter() = default;

SrgbConverter::Found SrgbConverter::find(std::span<const std::byte> profile, detail::Samples samples) {
  const Digest digest = hash128(profile);
  {
    const std::lock_guard lock(kept_->mutex);
    if (const Found* found = kept_->use(digest, samples)) return *found;
  }
  // Two threads may make the same one; no thread waits for another's.
  Found made;
  const bool is_srgb = samples == detail::Samples::kRgb && detail::class_of_profile(profile) == kIccSrgb;
  if (!is_srgb) made.transform = detail::SrgbTransform::make(profile, samples, made.reason);
  const std::lock_guard lock(kept_->mutex);
  ++kept_->num_made;
  if (kept_->use(digest, samples) != nullptr) return made;
  kept_->entries.push_front({digest, samples, made});
  if (kept_->entries.size() > kept_->max_entries) kept_->entries.pop_back();
  return made;
}

int64_t SrgbConverter::num_made() const {
  const std::lock_guard lock(kept_->mutex);
  return kept_->num_made;
}

uint16_t profile_class(std::span<const std::byte> bytes, const Info& info) {
  if ((info.flags & kIccProfile) == 0) return 0;
  const auto profile = detail::read_profile(bytes, info);
  return profile ? detail::class_of_profile(*profile.value) : uint16_t{kIccBroken};
}

std::vector<std::byte> rgb_profile(std::span<const std::byte> bytes, const Info& info) {
  if ((info.flags & kIccProfile) == 0 || detail::samples_of(info) != detail::Samples::kRgb) return {};
  auto profile = detail::read_profile(bytes, info);
  std::string reason;
  if (!profile || detail::SrgbTransform::make(*profile.value, detail::Samples::kRgb, reason) == nullptr)
    return {};
  return std::move(*profile.value);
}

}  // namespace chiliad::image
