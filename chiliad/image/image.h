#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "chiliad/base/host_array.h"

namespace chiliad::image {

enum class Format : uint8_t { kUnknown, kJpeg, kPng, kWebp, kGif, kBmp };

/// Properties of a picture that decoding or planning depends on; stored in the index (append only).
enum Flag : uint16_t {
  kProgressive = 1 << 0,
  kInterlaced = 1 << 1,
  kAlpha = 1 << 2,  ///< alpha channel or tRNS
  kPalette = 1 << 3,
  kGrey = 1 << 4,
  kCmyk = 1 << 5,
  kSixteenBit = 1 << 6,
  kAnimated = 1 << 7,
  kIccProfile = 1 << 8,
  // Of the profile (profile_class); none of them in an index of before they were recorded.
  kIccSrgb = 1 << 9,
  kIccP3 = 1 << 10,
  kIccOther = 1 << 11,
  kIccBroken = 1 << 12,
};

/// What the header says; read without decoding.
struct Info {
  Format format = Format::kUnknown;
  int32_t width = 0;        ///< after EXIF orientation
  int32_t height = 0;       ///< after EXIF orientation
  uint8_t orientation = 1;  ///< 1..8; broken EXIF counts as 1
  uint16_t flags = 0;       ///< bits of Flag
};

struct Limits {
  int64_t max_pixels = 178'956'970;
  int64_t max_bytes = 512LL << 20;
};

class SrgbConverter;

struct DecodeOptions {
  std::array<uint8_t, 3> background{255, 255, 255};  ///< under alpha and tRNS
  Limits limits{};
  /// Null: colours as they are stored. Else those of another profile than sRGB are converted, before they are
  /// blended, scaled or cut.
  SrgbConverter* to_srgb = nullptr;
  /// With to_srgb: set to why the picture's profile was not applied, where it was not. Null: not told.
  std::string* profile_note = nullptr;
};

/// Why a picture is not usable; `reason` is one line with the place and the cause.
struct Refusal {
  std::string reason;
};

/// Outcome of reading a header or decoding: a bad picture is expected, not exceptional.
template <typename T>
struct Outcome {
  std::optional<T> value;
  std::string reason;  ///< set where there is no value

  [[nodiscard]] explicit operator bool() const { return value.has_value(); }
};

/// Reads format, size after orientation and flags. Never throws for bad bytes. Thread-safe.
[[nodiscard]] Outcome<Info> probe(std::span<const std::byte> bytes, const Limits& limits = {});

/// Decodes the first frame to RGB8 [H, W, 3], uint8: EXIF orientation applied, alpha blended over the
/// background as Pillow's alpha_composite does, grey/palette/16-bit/CMYK converted as Pillow does (16 to 8
/// bits by >> 8). Damage that a decoder could only guess at (missing rows, bad Huffman codes) is a refusal.
/// Sizes are checked against the limits before anything is allocated. Thread-safe.
[[nodiscard]] Outcome<HostArray> decode(std::span<const std::byte> bytes, const DecodeOptions& options);

}  // namespace chiliad::image
