#include "chiliad/report/thumbnail.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "chiliad/base/error.h"
#include "chiliad/image/decode_fit.h"
#include "chiliad/image/encode.h"
#include "chiliad/io/file.h"

namespace chiliad::report {
namespace {

constexpr uint64_t kMostBytes = uint64_t{64} << 20;

struct Size {
  int32_t width = 0;
  int32_t height = 0;
};

/// The whole picture, no larger than it is.
Size inside(int64_t width, int64_t height, int32_t side) {
  const double scale =
      std::min(1.0, static_cast<double>(side) / static_cast<double>(std::max(width, height)));
  const auto scaled = [&](int64_t length) {
    return std::max(1, static_cast<int32_t>(std::lround(static_cast<double>(length) * scale)));
  };
  return {scaled(width), scaled(height)};
}

Thumbnail make_thumbnail(std::span<const std::byte> bytes, const index::Part& part, int32_t side) {
  Thumbnail made;
  const auto info = image::probe(bytes);
  Size size{side, side};  // where neither the file nor the index knows
  if (info) {
    made.format = info.value->format;
    size = inside(info.value->width, info.value->height, side);
  } else if (part.width > 0 && part.height > 0) {
    size = inside(part.width, part.height, side);
  }
  HostArray pixels(DType::kU8, Shape{size.height, size.width, 3});
  image::FitOptions options;
  options.fit = [&](int32_t /*width*/, int32_t /*height*/) {
    return image::stretch_fit(size.width, size.height);
  };
  options.dct_margin = 1.0;
  options.salvage = true;
  made.problem = image::decode_fit(bytes, options, pixels.bytes());
  const auto all = pixels.bytes();
  const bool is_empty = std::all_of(all.begin(), all.end(), [](std::byte b) { return b == std::byte{0}; });
  if (made.problem.empty() || !is_empty) made.png = image::encode_png(pixels);
  return made;
}

}  // namespace

Thumbnail read_thumbnail(const index::Index& index, const index::Shard& shard, const index::Part& part,
                         int32_t side) {
  if (part.length > kMostBytes) return {{}, fmt::format("more than {} bytes", kMostBytes)};
  std::vector<std::byte> bytes(part.length);
  try {
    const auto file = io::File::open_read(index.part_path(shard, part));
    bytes.resize(static_cast<size_t>(file.read_some_at(static_cast<int64_t>(part.offset), bytes)));
  } catch (const Error& error) {
    return {{}, error.what()};
  }
  return make_thumbnail(bytes, part, side);
}

const char* format_name(image::Format format) {
  switch (format) {
    case image::Format::kJpeg:
      return "JPEG";
    case image::Format::kPng:
      return "PNG";
    case image::Format::kWebp:
      return "WebP";
    case image::Format::kGif:
      return "GIF";
    case image::Format::kBmp:
      return "BMP";
    case image::Format::kUnknown:
      break;
  }
  return "unknown";
}

}  // namespace chiliad::report
