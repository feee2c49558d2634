#include "chiliad/image/image.h"

#include <fmt/core.h>

#include <utility>

#include "chiliad/image/detail/bmp_header.h"
#include "chiliad/image/detail/gif.h"
#include "chiliad/image/detail/icc_profile.h"
#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/orientation.h"
#include "chiliad/image/detail/png.h"
#include "chiliad/image/detail/row_sink.h"
#include "chiliad/image/detail/sniff.h"
#include "chiliad/image/detail/webp.h"

namespace chiliad::image {
namespace {

using detail::refuse;

/// The header as stored: size before orientation.
Outcome<Info> read_header(std::span<const std::byte> bytes) {
  switch (detail::sniff(bytes)) {
    case Format::kJpeg:
      return detail::read_jpeg_header(bytes);
    case Format::kPng: {
      auto file = detail::read_png_file(bytes);
      if (!file) return refuse<Info>(std::move(file.reason));
      return {file.value->info, {}};
    }
    case Format::kWebp:
      return detail::read_webp_header(bytes);
    case Format::kGif:
      return detail::read_gif_header(bytes);
    case Format::kBmp:
      return detail::read_bmp_header(bytes);
    default:
      break;
  }
  return refuse<Info>("not an image that can be read: the content is " + detail::guess_content(bytes));
}

Outcome<HostArray> decode_jpeg(std::span<const std::byte> bytes, const DecodeOptions& options) {
  auto stored = detail::read_jpeg_header(bytes);
  if (!stored) return refuse<HostArray>(std::move(stored.reason));
  Info& info = *stored.value;
  if (auto reason = detail::size_refusal(info.width, info.height, options.limits); !reason.empty()) {
    return refuse<HostArray>("jpeg: " + reason);
  }
  info.orientation = detail::orientation_to_apply(info.orientation);
  detail::PictureStage picture(info.width, info.height, info.orientation);
  const auto colours = detail::conversion_of(bytes, info, options);
  auto problem = detail::decode_jpeg(bytes, {info, options.limits.max_bytes, 1, {}, colours.get()}, picture);
  if (!problem.empty()) return refuse<HostArray>(std::move(problem));
  return {picture.take(), {}};
}

Outcome<HostArray> decode_png(std::span<const std::byte> bytes, const DecodeOptions& options) {
  auto file = detail::read_png_file(bytes);
  if (!file) return refuse<HostArray>(std::move(file.reason));
  Info& info = file.value->info;
  if (auto reason = detail::size_refusal(info.width, info.height, options.limits); !reason.empty()) {
    return refuse<HostArray>("png: " + reason);
  }
  info.orientation = detail::orientation_to_apply(info.orientation);
  const auto colours = detail::conversion_of(bytes, info, options);
  return detail::decode_png(*file.value, {options.background, colours.get()});
}

/// A format that is decoded as a whole.
using WholeDecoder = Outcome<HostArray> (*)(std::span<const std::byte>, const Info&, const DecodeOptions&);

Outcome<HostArray> decode_webp(std::span<const std::byte> bytes, const Info& stored,
                               const DecodeOptions& options) {
  const auto colours = detail::conversion_of(bytes, stored, options);
  return detail::decode_webp(bytes, stored, options.background, colours.get());
}

Outcome<HostArray> decode_gif(std::span<const std::byte> bytes, const Info& stored,
                              const DecodeOptions& options) {
  return detail::decode_gif(bytes, stored, options.background);
}

Outcome<HostArray> decode_whole(std::span<const std::byte> bytes, const DecodeOptions& options,
                                WholeDecoder decoder) {
  auto stored = read_header(bytes);
  if (!stored) return refuse<HostArray>(std::move(stored.reason));
  Info& info = *stored.value;
  if (auto reason = detail::size_refusal(info.width, info.height, options.limits); !reason.empty())
    return refuse<HostArray>(std::move(reason));
  info.orientation = detail::orientation_to_apply(info.orientation);
  return decoder(bytes, info, options);
}

}  // namespace

Outcome<Info> probe(std::span<const std::byte> bytes, const Limits& limits) {
  auto header = read_header(bytes);
  if (!header) return header;
  Info& info = *header.value;
  if (auto reason = detail::size_refusal(info.width, info.height, limits); !reason.empty()) {
    return refuse<Info>(std::move(reason));
  }
  if (info.orientation >= 5) std::swap(info.width, info.height);
  return header;
}

Outcome<HostArray> decode(std::span<const std::byte> bytes, const DecodeOptions& options) {
  const Format format = detail::sniff(bytes);
  if (format == Format::kJpeg) return decode_jpeg(bytes, options);
  if (format == Format::kPng) return decode_png(bytes, options);
  if (format == Format::kWebp) return decode_whole(bytes, options, decode_webp);
  if (format == Format::kGif) return decode_whole(bytes, options, decode_gif);
  if (format == Format::kBmp) return refuse<HostArray>("bmp: unsupported format. Convert the picture to PNG");
  return refuse<HostArray>(read_header(bytes).reason);
}

}  // namespace chiliad::image
