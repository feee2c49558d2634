#include "chiliad/image/vision_inputs.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::image {
namespace {

int32_t width_of(const HostArray& picture) {
  return static_cast<int32_t>(picture.shape()[1]);
}
int32_t height_of(const HostArray& picture) {
  return static_cast<int32_t>(picture.shape()[0]);
}

/// Puts the picture at (left, top) of the canvas.
void paste(const HostArray& picture, int32_t left, int32_t top, HostArray& canvas) {
  const auto row_bytes = size_t{3} * static_cast<size_t>(width_of(picture));
  for (int32_t y = 0; y < height_of(picture); ++y) {
    std::memcpy(canvas.data() + (int64_t{top + y} * width_of(canvas) + left) * 3,
                picture.data() + int64_t{y} * static_cast<int64_t>(row_bytes), row_bytes);
  }
}

/// The size of a picture fitted into `room`.
GridSize fitted_size(int32_t width, int32_t height, const GridSize& room) {
  const double scale_x = static_cast<double>(room.width) / width;
  const double scale_y = static_cast<double>(room.height) / height;
  if (scale_x < scale_y)
    return {std::min(static_cast<int32_t>(std::ceil(height * scale_x)), room.height), room.width};
  return {room.height, std::min(static_cast<int32_t>(std::ceil(width * scale_y)), room.width)};
}

}  // namespace

HostArray pad_to_square(const HostArray& picture, const std::array<uint8_t, 3>& color) {
  const int32_t side = std::max(width_of(picture), height_of(picture));
  HostArray canvas(DType::kU8, Shape{side, side, 3});
  const auto samples = canvas.as<uint8_t>();
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = color[i % 3];
  paste(picture, (side - width_of(picture)) / 2, (side - height_of(picture)) / 2, canvas);
  return canvas;
}

Fit clip_fit(int32_t source_width, int32_t source_height, int32_t edge, int32_t side) {
  Fit fit = shortest_edge_fit(source_width, source_height, edge, side);
  fit.left = (fit.full_width - side) / 2;
  fit.top = (fit.full_height - side) / 2;
  return fit;
}

HostArray normalize(const HostArray& picture, const Normalization& normalization) {
  const int64_t num_pixels = int64_t{width_of(picture)} * height_of(picture);
  HostArray made(DType::kF32, Shape{3, height_of(picture), width_of(picture)});
  const auto from = picture.as<uint8_t>();
  const auto to = made.as<float>();
  for (size_t c = 0; c < 3; ++c) {
    std::array<float, 256> table{};
    for (size_t level = 0; level < table.size(); ++level) {
      table[level] = static_cast<float>((static_cast<double>(level) / 255.0 - normalization.mean[c]) /
                                        normalization.std[c]);
    }
    for (int64_t i = 0; i < num_pixels; ++i)
      to[c * static_cast<size_t>(num_pixels) + static_cast<size_t>(i)] =
          table[from[static_cast<size_t>(3 * i) + c]];
  }
  return made;
}

GridSize best_resolution(int32_t width, int32_t height, std::span<const GridSize> choices) {
  CHILIAD_CHECK(!choices.empty() && width > 0 && height > 0, "no choices, or no pixels: {} x {}", width,
                height);
  GridSize best = choices.front();
  int64_t most_shown = 0;
  int64_t least_left = INT64_MAX;
  for (const GridSize& choice : choices) {
    const double scale =
        std::min(static_cast<double>(choice.width) / width, static_cast<double>(choice.height) / height);
    const int64_t scaled = static_cast<int64_t>(width * scale) * static_cast<int64_t>(height * scale);
    const int64_t shown = std::min(scaled, int64_t{width} * height);
    const int64_t left = int64_t{choice.width} * choice.height - shown;
    if (shown < most_shown || (shown == most_shown && left >= least_left)) continue;
    most_shown = shown;
    least_left = left;
    best = choice;
  }
  return best;
}

std::vector<HostArray> any_resolution_tiles(const HostArray& picture, int32_t tile,
                                            std::span<const GridSize> choices) {
  CHILIAD_CHECK_GT(tile, 0);
  const GridSize room = best_resolution(width_of(picture), height_of(picture), choices);
  CHILIAD_CHECK(room.width % tile == 0 && room.height % tile == 0, "{} x {} is no multiple of tiles of {}",
                room.width, room.height, tile);
  const GridSize size = fitted_size(width_of(picture), height_of(picture), room);
  HostArray canvas(DType::kU8, Shape{room.height, room.width, 3});
  std::fill(canvas.bytes().begin(), canvas.bytes().end(), std::byte{0});
  paste(resize(picture, size.width, size.height, Filter::kBicubic), (room.width - size.width) / 2,
        (room.height - size.height) / 2, canvas);
  std::vector<HostArray> tiles;
  tiles.push_back(resize(picture, tile, tile, Filter::kBicubic));
  for (int32_t y = 0; y < room.height; y += tile) {
    for (int32_t x = 0; x < room.width; x += tile) tiles.push_back(crop(canvas, x, y, tile, tile));
  }
  return tiles;
}

}  // namespace chiliad::image
