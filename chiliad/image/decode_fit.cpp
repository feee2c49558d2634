#include "chiliad/image/decode_fit.h"

#include <utility>

#include "chiliad/image/detail/icc_profile.h"
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
void fit_picture(const HostArray& picture, const SourceBox& box, const Fit& fit, const FitOptions& options,
                 std::span<std::byte> slot) {
  detail::ResizePipeline pipeline(static_cast<int32_t>(picture.shape()[1]),
                                  static_cast<int32_t>(picture.shape()[0]), box, fit, options.filter,
                                  options.mirrored, slot);
  detail::push_window(picture, pipeline);
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
  const auto colours = detail::conversion_of(bytes, stored, options.decode);
  detail::JpegRequest request{stored,
                              options.decode.limits.max_bytes,
                              dct_denominator(size.width, size.height, fit, options.dct_margin),
                              {},
                              colours.get()};
  const auto scale = [&](int32_t side) { return (side + request.denominator - 1) / request.denominator; };
  const Size scaled{scale(size.width), scale(size.height)};
  const SourceBox box = scaled_box(stored, scaled, request.denominator);
  if (stored.orientation != 1) {
    detail::PictureStage picture(scale(stored.width), scale(stored.height), stored.orientation);
    auto reason = detail::decode_jpeg(bytes, request, picture);
    const bool is_shown = reason.empty() || (options.salvage && picture.has_rows());
    if (is_shown) fit_picture(picture.take(), box, fit, options, slot);
    return reason;
  }
  detail::ResizePipeline pipeline(scaled.width, scaled.height, box, fit, options.filter, options.mirrored,
                                  slot);
  request.window = pipeline.window();
  auto reason = detail::decode_jpeg(bytes, request, pipeline.first());
  if (!reason.empty() && options.salvage) pipeline.first().finish();
  return reason;
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
  const auto colours = detail::conversion_of(bytes, stored, options.decode);
  return detail::decode_png(*file.value, {options.decode.background, colours.get()}, pipeline.window(),
                            pipeline.first());
}

/// What there is of a PNG, the only format of rows in no order that can be damaged in part.
void salvage_png(std::span<const std::byte> bytes, const FitOptions& options, std::span<std::byte> slot) {
  auto file = detail::read_png_file(bytes, true);
  if (!file) return;
  Info& stored = file.value->info;
  if (!detail::size_refusal(stored.width, stored.height, options.decode.limits).empty()) return;
  stored.orientation = detail::orientation_to_apply(stored.orientation);
  const auto picture = detail::salvage_png(*file.value, {options.decode.background, nullptr});
  if (!picture.has_value()) return;
  const Size size = turned(stored);
  fit_picture(*picture, whole(size), options.fit(size.width, size.height), options, slot);
}

}  // namespace

std::string decode_fit(std::span<const std::byte> bytes, const FitOptions& options,
                       std::span<std::byte> slot) {
  const Format format = detail::sniff(bytes);
  if (format == Format::kJpeg) return fit_jpeg(bytes, options, slot);
  std::optional<std::string> reason;
  if (format == Format::kPng) reason = fit_png(bytes, options, slot);
  if (reason.has_value()) {
    if (!reason->empty() && options.salvage) salvage_png(bytes, options, slot);
    return std::move(*reason);
  }
  auto picture = decode(bytes, options.decode);
  if (!picture) {
    if (format == Format::kPng && options.salvage) salvage_png(bytes, options, slot);
    return std::move(picture.reason);
  }
  const Size size{static_cast<int32_t>(picture.value->shape()[1]),
                  static_cast<int32_t>(picture.value->shape()[0])};
  fit_picture(*picture.value, whole(size), options.fit(size.width, size.height), options, slot);
  return {};
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
