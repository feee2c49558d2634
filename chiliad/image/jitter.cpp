#include "chiliad/image/jitter.h"

#include <array>
#include <cstdint>

#include "chiliad/base/error.h"

namespace chiliad::image {
namespace {

uint8_t* samples_of(std::span<std::byte> rgb) {
  CHILIAD_CHECK_EQ(rgb.size() % 3, size_t{0});
  return reinterpret_cast<uint8_t*>(rgb.data());
}

/// Pillow's Image.blend of one sample: single precision, cut to 8 bits downwards.
uint8_t blend(int from, int to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  if (value <= 0.0F) return 0;
  return value >= 255.0F ? uint8_t{255} : static_cast<uint8_t>(value);
}

/// Pillow's conversion to L.
int grey_of(const uint8_t* rgb) {
  return (rgb[0] * 19595 + rgb[1] * 38470 + rgb[2] * 7471 + 0x8000) >> 16;
}

void blend_with(int grey, float factor, std::span<std::byte> rgb) {
  std::array<uint8_t, 256> table{};
  for (int level = 0; level < 256; ++level) table[static_cast<size_t>(level)] = blend(grey, level, factor);
  uint8_t* sample = samples_of(rgb);
  for (size_t i = 0; i < rgb.size(); ++i) sample[i] = table[sample[i]];
}

/// Draws whether it is used or not, so that one amount does not move the draws of the others.
double draw_factor(double amount, Rng& rng) {
  return 1.0 + amount * (2.0 * rng.uniform_double() - 1.0);
}

}  // namespace

void jitter(const Jitter& amounts, Rng& rng, std::span<std::byte> rgb) {
  const double brightness = draw_factor(amounts.brightness, rng);
  const double contrast = draw_factor(amounts.contrast, rng);
  const double saturation = draw_factor(amounts.saturation, rng);
  scale_brightness(brightness, rgb);
  scale_contrast(contrast, rgb);
  scale_saturation(saturation, rgb);
}

void scale_brightness(double factor, std::span<std::byte> rgb) {
  if (factor == 1.0) return;
  blend_with(0, static_cast<float>(factor), rgb);
}

void scale_contrast(double factor, std::span<std::byte> rgb) {
  if (factor == 1.0 || rgb.empty()) return;
  const uint8_t* sample = samples_of(rgb);
  int64_t sum = 0;
  for (size_t i = 0; i < rgb.size(); i += 3) sum += grey_of(sample + i);
  const auto count = static_cast<double>(rgb.size() / 3);
  blend_with(static_cast<int>(static_cast<double>(sum) / count + 0.5), static_cast<float>(factor), rgb);
}

void scale_saturation(double factor, std::span<std::byte> rgb) {
  if (factor == 1.0) return;
  uint8_t* sample = samples_of(rgb);
  for (size_t i = 0; i < rgb.size(); i += 3) {
    const int grey = grey_of(sample + i);
    for (size_t c = 0; c < 3; ++c) sample[i + c] = blend(grey, sample[i + c], static_cast<float>(factor));
  }
}

}  // namespace chiliad::image
