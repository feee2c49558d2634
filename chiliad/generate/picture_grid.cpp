#include "chiliad/generate/picture_grid.h"

#include <algorithm>
#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::generate {
namespace {
constexpr int64_t kMargin = 4;

void paste(HostArray& canvas, const HostArray& picture, int64_t left, int64_t top, int64_t zoom) {
  auto out = canvas.as<uint8_t>();
  const auto in = picture.as<uint8_t>();
  const int64_t stride = canvas.shape()[1];
  for (int64_t y = 0; y < picture.shape()[0] * zoom; ++y) {
    for (int64_t x = 0; x < picture.shape()[1] * zoom; ++x) {
      const int64_t from = (y / zoom * picture.shape()[1] + x / zoom) * 3;
      const int64_t to = ((top + y) * stride + left + x) * 3;
      std::memcpy(&out[static_cast<size_t>(to)], &in[static_cast<size_t>(from)], 3);
    }
  }
}

}  // namespace

HostArray make_grid(const std::vector<HostArray>& pictures, int columns, int zoom) {
  CHILIAD_CHECK(!pictures.empty() && columns > 0 && zoom > 0);
  int64_t cell_height = 0;
  int64_t cell_width = 0;
  for (const auto& picture : pictures) {
    cell_height = std::max(cell_height, picture.shape()[0] * zoom);
    cell_width = std::max(cell_width, picture.shape()[1] * zoom);
  }
  const int64_t across = std::min<int64_t>(columns, static_cast<int64_t>(pictures.size()));
  const int64_t down = (static_cast<int64_t>(pictures.size()) + across - 1) / across;
  HostArray canvas(DType::kU8, Shape{down * (cell_height + kMargin) + kMargin,
                                     across * (cell_width + kMargin) + kMargin, 3});
  std::fill(canvas.as<uint8_t>().begin(), canvas.as<uint8_t>().end(), uint8_t{255});
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / across;
    const auto column = static_cast<int64_t>(i) % across;
    const int64_t left =
        kMargin + column * (cell_width + kMargin) + (cell_width - pictures[i].shape()[1] * zoom) / 2;
    const int64_t top =
        kMargin + row * (cell_height + kMargin) + (cell_height - pictures[i].shape()[0] * zoom) / 2;
    paste(canvas, pictures[i], left, top, zoom);
  }
  return canvas;
}

}  // namespace chiliad::generate
