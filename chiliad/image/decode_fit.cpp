#include "chiliad/image/decode_fit.h"

#include <utility>

#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/orientation.h"
#include "chiliad/image/detail/png.h"
#include "chiliad/image/detail/row_sink.h"
#include "chiliad/image/detail/row_stages.h"
#include "chiliad/image/detail/sniff.h"

namespace chiliad::image {
namespace {

struct Size {
  int32_t width = 0;
  int32_t height = 0;
};

Size turned(const Info& stored) {
  if (stored.orientation >= 5) return {stored.height, stored.width};
  return {stored.width, stored.height};
}

/// The picture in memory: the way for everything whose rows do not come in order.
std::string fit_picture(const HostArray& picture, const SourceBox& box, const Fit& fit,
                        const FitOptions& options, std::span<std::byte> slot) {
  detail::ResizePipeline pipeline(static_cast<int32_t>(picture.shape()[1]),
                                  static_cast<int32_t>(picture.shape()[0]), box, fit, options.filter,
                                  options.mirrored, slot);
  detail::push_window(picture, pipeline);
  return {};
}

SourceBox whole(Size size) {
  return {0.0, 0.0, static_cast<double>(size.width), static_cast<double>(size.height)};
}

/// What the whole picture is of its scaled decode, whose last row and column may stand for less than a pixel.
SourceBox scaled_box(const Info& stored, Size scaled, int denominator) {
  const Size size = turned(stored);
  const double width = static_cast<double>(size.width) / denominator;
  const double height = static_cast<double>(size.height) / denominator;
  const double left = detail::mirrors_x(stored.orientation) ? scaled.width - width : 0.0;
  const double top = detail::mirrors_y(stored.orientation) ? scaled.height - height : 0.0;
  return {left, top, left + width, top + height};
}

std::string fit_jpeg(std::span<const std::byte> bytes, const FitOptions& options, std::span<std::byte> slot) {
  auto header = detail::read_jpeg_header(bytes);
  if (!header) return header.reason;
  Info stored = *header.value;
  if (auto reason = detail::size_refusal(stored.width, stored.height, options.decode.limits); !reason.empty())
    return "jpeg: " + reason;
  stored.orientation = detail::orientation_to_apply(stored.orientation);
  const Size size = turned(stored);
  const Fit fit = options.fit(size.width, size.height);
  detail::JpegRequest request{stored,
                              options.decode.limits.max_bytes,
                              dct_denominator(size.width, size.height, fit, options.dct_margin),
                              {}};
  const auto scale = [&](int32_t side) { return (side + request.denominator - 1) / request.denominator; };
  const Size scaled{scale(size.width), scale(size.height)};
  const SourceBox box = scaled_box(stored, scaled, request.denominator);
  if (stored.orientation != 1) {
    detail::PictureStage picture(scale(stored.width), scale(stored.height), stored.orientation);
    auto reason = detail::decode_jpeg(bytes, request, picture);
    return reason.empty() ? fit_picture(picture.take(), box, fit, options, slot) : reason;
  }
  detail::ResizePipeline pipeline(scaled.width, scaled.height, box, fit, options.filter, options.mirrored,
                                  slot);
  request.window = pipeline.window();
  return detail::decode_jpeg(bytes, request, pipeline.first());
}

/// Nothing where the file's rows do not come in the order of the picture.
std::optional<std::string> fit_png(std::span<const std::byte> bytes, const FitOptions& options,
                                   std::span<std::byte> slot) {
  auto file = detail::read_png_file(bytes);
  if (!file) return std::move(file.reason);
  const Info& stored = file.value->info;
  if (auto reason = detail::size_refusal(stored.width, stored.height, options.decode.limits); !reason.empty())
    return "png: " + reason;
  if (detail::orientation_to_apply(stored.orientation) != 1 || (stored.flags & kInterlaced) != 0)
    return std::nullopt;
  const Size size{stored.width, stored.height};
  detail::ResizePipeline pipeline(size.width, size.height, whole(size), options.fit(size.width, size.height),
                                  options.filter, options.mirrored, slot);
  return detail::decode_png(*file.value, options.decode.background, pipeline.window(), pipeline.first());
}

}  // namespace

std::string decode_fit(std::span<const std::byte> bytes, const FitOptions& options,
                       std::span<std::byte> slot) {
  const Format format = detail::sniff(bytes);
  if (format == Format::kJpeg) return fit_jpeg(bytes, options, slot);
  if (format == Format::kPng) {
    if (auto reason = fit_png(bytes, options, slot)) return std::move(*reason);
  }
  const auto picture = decode(bytes, options.decode);
  if (!picture) return picture.reason;
  const Size size{static_cast<int32_t>(picture.value->shape()[1]),
                  static_cast<int32_t>(picture.value->shape()[0])};
  return fit_picture(*picture.value, whole(size), options.fit(size.width, size.height), options, slot);
}

int dct_denominator(int32_t width, int32_t height, const Fit& fit, double margin) {
  if (margin < 1.0) return 1;
  for (const int denominator : {8, 4, 2}) {
    if (width >= denominator * margin * fit.full_width && height >= denominator * margin * fit.full_height)
      return denominator;
  }
  return 1;
}

}  // namespace chiliad::image
