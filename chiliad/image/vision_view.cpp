#include "chiliad/image/vision_view.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/image/decode_fit.h"
#include "chiliad/image/vision_inputs.h"

namespace chiliad::image {
namespace {

/// LLaVA-NeXT's image_grid_pinpoints.
std::array<GridSize, 5> grids_of(int32_t side) {
  return {GridSize{side, 2 * side}, GridSize{2 * side, side}, GridSize{2 * side, 2 * side},
          GridSize{3 * side, side}, GridSize{side, 3 * side}};
}

bool is_tiled(const VisionView& view, int64_t num_pictures) {
  return view.fit == VisionFit::kTiles && num_pictures == 1;
}

double rounded(double value) {
  return std::round(value * 1e7) / 1e7;
}

/// Patches of a grid that show the picture, as the model cuts the padding off; and its lines.
int64_t shown_positions(int32_t width, int32_t height, int64_t columns, int64_t lines) {
  const double ratio = static_cast<double>(width) / height;
  const double grid_ratio = static_cast<double>(columns) / static_cast<double>(lines);
  if (ratio > grid_ratio) {
    const auto fitted =
        static_cast<int64_t>(rounded(height * (static_cast<double>(columns) / static_cast<double>(width))));
    lines -= (lines - fitted) / 2 * 2;
  } else {
    const auto fitted =
        static_cast<int64_t>(rounded(width * (static_cast<double>(lines) / static_cast<double>(height))));
    columns -= (columns - fitted) / 2 * 2;
  }
  return lines * columns + lines;
}

void copy_to(const HostArray& tile, std::span<std::byte> slot) {
  std::memcpy(slot.data(), tile.data(), tile.bytes().size());
}

}  // namespace

VisionFit vision_fit(std::string_view name) {
  if (name == "pad") return VisionFit::kPad;
  CHILIAD_CHECK(name == "crop" || name == "tiles", "vision fit '{}'", name);
  return name == "crop" ? VisionFit::kCrop : VisionFit::kTiles;
}

Digest VisionView::digest() const {
  return Hasher().add("vision view 1").add(side).add(patch).add(static_cast<int>(fit)).digest();
}

VisionSize vision_size(const VisionView& view, int32_t width, int32_t height, int64_t num_pictures) {
  VisionSize size{1, view.tile_positions()};
  if (!is_tiled(view, num_pictures)) return size;
  const GridSize best = best_resolution(width, height, grids_of(view.side));
  size.tiles += int64_t{best.height / view.side} * (best.width / view.side);
  const int32_t patches = view.side / view.patch;
  size.positions += shown_positions(width, height, int64_t{best.width / view.side} * patches,
                                    int64_t{best.height / view.side} * patches);
  return size;
}

std::string vision_tiles(const VisionView& view, std::span<const std::byte> bytes, int64_t num_pictures,
                         const DecodeOptions& options, std::span<std::byte> slot) {
  const auto tile_bytes = static_cast<size_t>(view.tile_bytes());
  if (view.fit == VisionFit::kCrop) {
    CHILIAD_CHECK_EQ(slot.size(), tile_bytes);
    FitOptions fitted;
    fitted.fit = [&](int32_t width, int32_t height) { return clip_fit(width, height, view.side, view.side); };
    fitted.decode = options;
    return decode_fit(bytes, fitted, slot);
  }
  const auto picture = decode(bytes, options);
  if (!picture) return picture.reason;
  if (!is_tiled(view, num_pictures)) {
    CHILIAD_CHECK_EQ(slot.size(), tile_bytes);
    const int64_t side = std::max(picture.value->shape()[0], picture.value->shape()[1]);
    if (side * side > options.limits.max_pixels)
      return fmt::format("padded to a square it would have {} x {} pixels, expected at most {}", side, side,
                         options.limits.max_pixels);
    copy_to(resize(pad_to_square(*picture.value, kClipMeanColor), view.side, view.side, Filter::kBicubic),
            slot);
    return "";
  }
  const auto tiles = any_resolution_tiles(*picture.value, view.side, grids_of(view.side));
  if (tiles.size() * tile_bytes != slot.size())
    return fmt::format("has {} tiles, expected {}: its size is not the one that was indexed", tiles.size(),
                       slot.size() / tile_bytes);
  for (size_t t = 0; t < tiles.size(); ++t) copy_to(tiles[t], slot.subspan(t * tile_bytes, tile_bytes));
  return "";
}

}  // namespace chiliad::image
