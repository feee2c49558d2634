// Headers and decoding of pictures, and the lossless transcoding of JPEGs.
#include <span>
#include <vector>

#include "chiliad/image/decode_fit.h"
#include "chiliad/image/fit.h"
#include "chiliad/image/image.h"
#include "chiliad/image/srgb.h"
#include "chiliad/image/transcode.h"

namespace chiliad::fuzz {
namespace {

constexpr image::Limits kLimits{.max_pixels = 1 << 18, .max_bytes = 1 << 20};

void check_transcoded(std::span<const std::byte> bytes, const HostArray& picture) {
  const auto made = image::to_baseline_jpeg(bytes, kLimits);
  if (!made) return;
  const auto again = image::decode(*made.value, {.background = {255, 255, 255}, .limits = kLimits});
  CHILIAD_CHECK(again, "a transcoded picture is refused: {}", again.reason);
  CHILIAD_CHECK(again.value->shape() == picture.shape());
}

/// A profile decides colours, never whether there is a picture.
void check_converted(std::span<const std::byte> bytes, const image::Outcome<HostArray>& picture) {
  image::SrgbConverter converter(1);
  const auto converted = image::decode(bytes, {.limits = kLimits, .to_srgb = &converter});
  CHILIAD_CHECK_EQ(static_cast<bool>(converted), static_cast<bool>(picture));
  if (picture) CHILIAD_CHECK(converted.value->shape() == picture.value->shape());
}

void run(std::span<const std::byte> bytes) {
  const auto info = image::probe(bytes, kLimits);
  const auto picture = image::decode(bytes, {.background = {255, 255, 255}, .limits = kLimits});
  check_converted(bytes, picture);
  if (info) static_cast<void>(image::profile_class(bytes, *info.value));
  if (picture) {
    CHILIAD_CHECK(info, "decoded, but its header is refused: {}", info.reason);
    CHILIAD_CHECK_EQ(picture.value->shape()[0], info.value->height);
    CHILIAD_CHECK_EQ(picture.value->shape()[1], info.value->width);
    if (info.value->format == image::Format::kJpeg) check_transcoded(bytes, *picture.value);
  }
  image::FitOptions options;
  options.decode.limits = kLimits;
  std::vector<std::byte> slot(16 * 24 * 3);
  options.fit = [](int32_t width, int32_t height) {
    return image::cover_fit(width, height, 16, 24, 0.5F, 0.5F);
  };
  const bool is_fitted = image::decode_fit(bytes, options, slot).empty();
  CHILIAD_CHECK_EQ(is_fitted, static_cast<bool>(picture));
}

}  // namespace
}  // namespace chiliad::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  chiliad::fuzz::run(std::as_bytes(std::span(data, size)));
  return 0;
}
