#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "chiliad/image/image.h"

namespace chiliad::image::detail {

/// What a picture's samples are. Grey ones come as pixels of three like samples.
enum class Samples : uint8_t { kRgb, kGrey, kCmyk };

[[nodiscard]] Samples samples_of(const Info& info);

/// Colours of one ICC profile to sRGB. Thread-safe.
class SrgbTransform {
 public:
  /// Null, with a one-line reason, for a profile that is damaged or of another kind of samples.
  static std::unique_ptr<const SrgbTransform> make(std::span<const std::byte> profile, Samples samples,
                                                   std::string& reason);
  ~SrgbTransform();
  SrgbTransform(const SrgbTransform&) = delete;
  SrgbTransform& operator=(const SrgbTransform&) = delete;

  /// to: RGB8. from: RGB8 or grey as three samples, which may be `to` itself; CMYK8 as libjpeg gives it (ink
  /// inverted), which may not.
  void convert(const uint8_t* from, uint8_t* to, int32_t count) const;

 private:
  SrgbTransform(void* context, void* transform) : context_(context), transform_(transform) {}

  void* context_;
  void* transform_;
};

/// The flag of profile_class for a profile's bytes.
[[nodiscard]] uint16_t class_of_profile(std::span<const std::byte> profile);

}  // namespace chiliad::image::detail
