#include "chiliad/image/detail/webp.h"

#include <fmt/core.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/image/detail/blend.h"
#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/exif.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/row_sink.h"

namespace chiliad::image::detail {
namespace {

Info info_of(int64_t width, int64_t height) {
  Info info;
  info.format = Format::kWebp;
  info.width = static_cast<int32_t>(width);
  info.height = static_cast<int32_t>(height);
  return info;
}

uint8_t webp_orientation(std::span<const std::byte> bytes) {
  const ByteView exif(webp_chunk(bytes, "EXIF"));
  const int64_t prefix = exif.starts_with(std::string_view("Exif\0\0", 6)) ? 6 : 0;
  return exif_orientation(exif.part(prefix, exif.size() - prefix));
}

Info extended_webp(std::span<const std::byte> file) {
  const ByteView bytes(file);
  Info info = info_of(int64_t{bytes.le24(24)} + 1, int64_t{bytes.le24(27)} + 1);
  const uint8_t features = bytes.u8(20);
  if ((features & 0x02U) != 0) info.flags |= kAnimated;
  if ((features & 0x08U) != 0) info.orientation = webp_orientation(file);
  if ((features & 0x10U) != 0) info.flags |= kAlpha;
  if ((features & 0x20U) != 0) info.flags |= kIccProfile;
  return info;
}

struct FreeDemuxer {
  void operator()(WebPDemuxer* demuxer) const { WebPDemuxDelete(demuxer); }
};

/// A still picture as the whole file, or a frame of an animation and its place.
struct Frame {
  std::span<const uint8_t> bytes;
  int32_t left = 0;
  int32_t top = 0;
  int32_t width = 0;
  int32_t height = 0;
  bool alpha = false;
};

/// In place; alpha stays.
void convert_row(const SrgbTransform& colours, const Frame& frame, uint8_t* row) {
  if (!frame.alpha) return colours.convert(row, row, frame.width);
  std::vector<uint8_t> rgb(size_t{3} * static_cast<size_t>(frame.width));
  for (int32_t x = 0; x < frame.width; ++x) std::copy_n(row + 4 * x, 3, &rgb[size_t{3} * x]);
  colours.convert(rgb.data(), rgb.data(), frame.width);
  for (int32_t x = 0; x < frame.width; ++x) std::copy_n(&rgb[size_t{3} * x], 3, row + 4 * x);
}

/// Puts the frame into the sink, over the background. Returns a problem, or nothing.
std::string decode_frame(const Frame& frame, const std::array<uint8_t, 3>& background,
                         const SrgbTransform* colours, RowSink& sink) {
  const int32_t pixel_bytes = frame.alpha ? 4 : 3;
  const int32_t stride = frame.width * pixel_bytes;
  std::vector<uint8_t> pixels(static_cast<size_t>(stride) * static_cast<size_t>(frame.height));
  const auto decode = frame.alpha ? WebPDecodeRGBAInto : WebPDecodeRGBInto;
  if (decode(frame.bytes.data(), frame.bytes.size(), pixels.data(), pixels.size(), stride) == nullptr)
    return "webp: damaged or cut data";
  std::vector<uint8_t> rgb(frame.alpha ? size_t{3} * static_cast<size_t>(frame.width) : 0);
  for (int32_t y = 0; y < frame.height; ++y) {
    uint8_t* row = pixels.data() + int64_t{y} * stride;
    if (colours != nullptr) convert_row(*colours, frame, row);
    if (frame.alpha) blend_row(row, frame.width, background, rgb.data());
    sink.write(frame.top + y, frame.alpha ? rgb.data() : row, frame.width, frame.left);
  }
  return {};
}

/// Checked against the header before pixels are allocated.
std::string features_problem(Frame& frame) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(frame.bytes.data(), frame.bytes.size(), &features) != VP8_STATUS_OK)
    return "webp: damaged header of the picture data";
  if (features.width != frame.width || features.height != frame.height) {
    return fmt::format("webp: header: expected {} x {} pixels, got {} x {} in the picture data", frame.width,
                       frame.height, features.width, features.height);
  }
  frame.alpha = features.has_alpha != 0;
  return {};
}

/// Fills `frame` with the first one of an animation.
std::string first_frame(std::span<const std::byte> bytes, const Info& stored, Frame& frame) {
  const WebPData data{reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()};
  const std::unique_ptr<WebPDemuxer, FreeDemuxer> demuxer(WebPDemux(&data));
  if (demuxer == nullptr) return "webp: damaged or cut chunks";
  WebPIterator found{};
  if (WebPDemuxGetFrame(demuxer.get(), 1, &found) == 0) return "webp: animation without frames";
  frame = {
      {found.fragment.bytes, found.fragment.size}, found.x_offset, found.y_offset, found.width, found.height};
  WebPDemuxReleaseIterator(&found);  // the bytes are the file's
  if (frame.left + frame.width > stored.width || frame.top + frame.height > stored.height)
    return "webp: a frame beyond the canvas";
  return {};
}

}  // namespace

std::span<const std::byte> webp_chunk(std::span<const std::byte> bytes, std::string_view name) {
  const ByteView view(bytes);
  for (int64_t at = 12; view.has(at, 8);) {
    const int64_t size = view.le32(at + 4);
    if (view.starts_with(name, at)) return view.part(at + 8, size);
    at += 8 + size + (size & 1);
  }
  return {};
}

Outcome<Info> read_webp_header(std::span<const std::byte> bytes) {
  const ByteView view(bytes);
  if (view.starts_with("VP8X", 12) && view.has(20, 10)) return {extended_webp(bytes), {}};
  if (view.starts_with("VP8L", 12) && view.u8(20) == 0x2f && view.has(20, 5)) {
    const uint32_t bits = view.le32(21);
    Info info = info_of((bits & 0x3fffU) + 1, (bits >> 14U & 0x3fffU) + 1);
    if ((bits >> 28U & 1U) != 0) info.flags |= kAlpha;
    return {info, {}};
  }
  if (view.starts_with("VP8 ", 12) && view.le24(23) == 0x2a019d && view.has(20, 10)) {
    return {info_of(view.le16(26) & 0x3fffU, view.le16(28) & 0x3fffU), {}};
  }
  return refuse<Info>("webp: byte 12: expected a whole VP8, VP8L or VP8X chunk");
}

Outcome<HostArray> decode_webp(std::span<const std::byte> bytes, const Info& stored,
                               const std::array<uint8_t, 3>& background, const SrgbTransform* colours) {
  const ByteView view(bytes);
  if (const int64_t claimed = int64_t{view.le32(4)} + 8; claimed > view.size()) {
    return refuse<HostArray>(
        fmt::format("webp: expected {} bytes, the file ends after {}", claimed, view.size()));
  }
  const std::span<const uint8_t> data(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  Frame frame{data, 0, 0, stored.width, stored.height};
  const bool animated = (stored.flags & kAnimated) != 0;
  std::string problem = animated ? first_frame(bytes, stored, frame) : std::string();
  if (problem.empty()) problem = features_problem(frame);
  if (!problem.empty()) return refuse<HostArray>(std::move(problem));
  RowSink sink(stored.width, stored.height, stored.orientation);
  if (frame.width < stored.width || frame.height < stored.height) sink.fill(background);
  problem = decode_frame(frame, background, colours, sink);
  if (!problem.empty()) return refuse<HostArray>(std::move(problem));
  return {sink.take(), {}};
}

}  // namespace chiliad::image::detail
