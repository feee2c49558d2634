#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "chiliad/image/image.h"

namespace chiliad::image {

namespace detail {
class SrgbTransform;
enum class Samples : uint8_t;
}  // namespace detail

/// The flag of Flag that says what the picture's ICC profile is: kIccSrgb, kIccP3 (Display P3), kIccOther or
/// kIccBroken; 0 where it has none. info: of `probe`. Thread-safe.
[[nodiscard]] uint16_t profile_class(std::span<const std::byte> bytes, const Info& info);

/// The ICC profile of a picture whose decoded pixels it is for: of RGB, and readable. Empty: it has none
/// such.
[[nodiscard]] std::vector<std::byte> rgb_profile(std::span<const std::byte> bytes, const Info& info);

/// Conversions to sRGB that were made, by profile: what DecodeOptions::to_srgb names. Perceptual intent, as
/// Pillow's ImageCms.profileToProfile by default. Thread-safe.
class SrgbConverter {
 public:
  /// Keeps the conversions of that many profiles, those used last.
  explicit SrgbConverter(size_t max_profiles = 32);
  ~SrgbConverter();
  SrgbConverter(const SrgbConverter&) = delete;
  SrgbConverter& operator=(const SrgbConverter&) = delete;

  /// Shared with the decodes that use it; null with a reason where the profile cannot be applied to such
  /// samples, null without one where it is sRGB's own.
  struct Found {
    std::shared_ptr<const detail::SrgbTransform> transform{};
    std::string reason{};
  };
  [[nodiscard]] Found find(std::span<const std::byte> profile, detail::Samples samples);
  /// Conversions made so far, each for a profile that was not kept.
  [[nodiscard]] int64_t num_made() const;

 private:
  struct Kept;
  const std::unique_ptr<Kept> kept_;
};

}  // namespace chiliad::image
