#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "chiliad/image/fit.h"
#include "chiliad/image/image.h"
#include "chiliad/image/resize.h"

namespace chiliad::image {

struct FitOptions {
  /// From the picture's size after orientation; what it gives decides the size of the slot.
  std::function<Fit(int32_t width, int32_t height)> fit;
  Filter filter = Filter::kBicubic;
  bool mirrored = false;  ///< the result, left and right
  /// 0: JPEGs are decoded in full. From 1 on: see dct_denominator; other pixels, sooner.
  double dct_margin = 0.0;
  /// For people who look at damage: all rows before it are in the slot, of a PNG also where its data is cut
  /// or its checksums are wrong. What is not there is left as the slot was. The refusals are the same.
  bool salvage = false;
  DecodeOptions decode;
};

/// decode, resize by `fit` and mirror in one go: rows are resized as they come from the decoder and go
/// straight into the slot; of the picture only the rows that the next output row needs are kept, and what
/// lies outside of the cut is not worked on. The same pixels as the separate functions give, and the same
/// refusals. slot: uint8 [fit.height, fit.width, 3]; undefined after a refusal, but see salvage. Returns why
/// the picture is refused, or nothing. Thread-safe.
[[nodiscard]] std::string decode_fit(std::span<const std::byte> bytes, const FitOptions& options,
                                     std::span<std::byte> slot);

/// The largest of 1, 2, 4 and 8 by which both sides of a JPEG can be divided in decoding and stay at least
/// `margin` times those that `fit` resizes to. margin 1: Pillow's draft for that size. A margin below 1
/// gives 1.
[[nodiscard]] int dct_denominator(int32_t width, int32_t height, const Fit& fit, double margin);

}  // namespace chiliad::image
