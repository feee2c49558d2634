#pragma once

#include <cstddef>
#include <span>

#include "chiliad/base/rng.h"

namespace chiliad::image {

/// Each factor is drawn from [1 - x, 1 + x]; 0 leaves the colours.
struct Jitter {
  double brightness = 0.0;
  double contrast = 0.0;
  double saturation = 0.0;
};

/// Multiplies brightness, then contrast, then saturation of RGB8 pixels by factors drawn from `rng`, in this
/// order; each is Pillow's ImageEnhance with that factor, to the bit.
void jitter(const Jitter& amounts, Rng& rng, std::span<std::byte> rgb);

/// Pillow's ImageEnhance.Brightness, Contrast and Color on RGB8 pixels. factor >= 0; 1 changes nothing.
void scale_brightness(double factor, std::span<std::byte> rgb);
void scale_contrast(double factor, std::span<std::byte> rgb);
void scale_saturation(double factor, std::span<std::byte> rgb);

}  // namespace chiliad::image
