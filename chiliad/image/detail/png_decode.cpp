#include <fmt/core.h>
#include <spng.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include "chiliad/image/detail/blend.h"
#include "chiliad/image/detail/byte_view.h"
#include "chiliad/image/detail/limits.h"
#include "chiliad/image/detail/png.h"
#include "chiliad/image/detail/row_sink.h"

namespace chiliad::image::detail {
namespace {

// Deflate cannot do better than 258 bytes for 2 bits, as zlib's own manual says.
constexpr int64_t kMaxDeflateRatio = 1032;
constexpr int32_t kAdamFirstX[7] = {0, 4, 0, 2, 0, 1, 0};
constexpr int32_t kAdamStepX[7] = {8, 8, 4, 4, 2, 2, 1};

/// Feeds libspng the chunks that matter and an IEND of our own: profiles and texts are never inflated, and
/// their damage does not count.
class PartStream {
 public:
  explicit PartStream(const PngFile& file) : parts_(file.parts) {
    if (!file.cut_idat.empty()) {
      const auto size = static_cast<uint32_t>(file.cut_idat.size());
      for (int i = 0; i < 4; ++i)
        cut_header_[static_cast<size_t>(i)] = static_cast<uint8_t>(size >> (24 - 8 * i));
      parts_.push_back(std::as_bytes(std::span(cut_header_)));
      parts_.push_back(file.cut_idat);
      parts_.push_back(std::as_bytes(std::span(kNoCrc)));
    }
    parts_.push_back(std::as_bytes(std::span(kEnd)));
  }
  PartStream(const PartStream&) = delete;
  PartStream& operator=(const PartStream&) = delete;

  static int read(spng_ctx* /*context*/, void* self, void* out, size_t count) {
    return static_cast<PartStream*>(self)->take(static_cast<std::byte*>(out), count) ? 0 : SPNG_IO_EOF;
  }

 private:
  bool take(std::byte* out, size_t count) {
    while (count > 0) {
      if (index_ == parts_.size()) return false;
      const auto part = parts_[index_];
      const size_t some = std::min(count, part.size() - used_);
      std::memcpy(out, part.data() + used_, some);
      out += some;
      count -= some;
      used_ += some;
      if (used_ < part.size()) continue;
      ++index_;
      used_ = 0;
    }
    return true;
  }

  static constexpr uint8_t kEnd[12] = {0, 0, 0, 0, 'I', 'E', 'N', 'D', 0xae, 0x42, 0x60, 0x82};
  static constexpr uint8_t kNoCrc[4] = {};
  std::vector<std::span<const std::byte>> parts_;
  std::array<uint8_t, 8> cut_header_{0, 0, 0, 0, 'I', 'D', 'A', 'T'};
  size_t index_ = 0;
  size_t used_ = 0;
};

using Rgb = std::array<uint8_t, 3>;

/// Turns raw rows (packed, big-endian) into RGB8 over the background.
class RowExpander {
 public:
  /// look.colours outlives it.
  RowExpander(const PngFile& file, const PngLook& look)
      : colour_(file.colour),
        depth_(file.bit_depth),
        channels_(file.channels()),
        background_(look.background),
        colours_(look.colours) {
    const ByteView transparency(file.transparency);
    if (colour_ == PngColour::kPalette) {
      fill_palette(file);
    } else if (transparency.size() > 0) {
      key_ = Key{};
      for (int c = 0; c < channels_; ++c) (*key_)[c] = static_cast<uint16_t>(transparency.be16(2 * c));
    }
    if (colour_ == PngColour::kGrey && depth_ <= 8) fill_grey();
  }

  /// False if a pixel names a colour that the palette lacks.
  [[nodiscard]] bool expand(const uint8_t* raw, int32_t count, uint8_t* rgb) const {
    const bool indexed = colour_ == PngColour::kPalette || (colour_ == PngColour::kGrey && depth_ <= 8);
    if (indexed) return expand_table(raw, count, rgb);
    if (colour_ == PngColour::kGreyAlpha || colour_ == PngColour::kRgbAlpha) {
      expand_alpha(raw, count, rgb);
    } else if (colour_ == PngColour::kRgb && depth_ == 8 && !key_) {
      std::memcpy(rgb, raw, 3 * static_cast<size_t>(count));
      convert(rgb, count);
    } else {
      expand_opaque(raw, count, rgb);
    }
    return true;
  }

 private:
  using Key = std::array<uint16_t, 3>;

  void convert(uint8_t* rgb, int32_t count) const {
    if (colours_ != nullptr) colours_->convert(rgb, rgb, count);
  }

  void fill_palette(const PngFile& file) {
    num_colours_ = static_cast<int>(file.palette.size() / 3);
    std::memcpy(table_.data(), file.palette.data(), file.palette.size());
    convert(table_[0].data(), num_colours_);
    const ByteView alphas(file.transparency);
    for (int i = 0; i < num_colours_; ++i) {
      const uint8_t alpha = i < alphas.size() ? alphas.u8(i) : uint8_t{255};
      for (int c = 0; c < 3; ++c) table_[i][c] = blend(table_[i][c], background_[c], alpha);
    }
  }

  void fill_grey() {
    num_colours_ = 1 << depth_;
    for (int i = 0; i < num_colours_; ++i) {
      const auto grey = static_cast<uint8_t>(i * 255 / (num_colours_ - 1));
      table_[i] = {grey, grey, grey};
    }
    convert(table_[0].data(), num_colours_);
    if (key_ && (*key_)[0] < num_colours_) table_[(*key_)[0]] = background_;
  }

  bool expand_table(const uint8_t* raw, int32_t count, uint8_t* rgb) const {
    const int mask = (1 << depth_) - 1;
    bool known = true;
    for (int32_t i = 0; i < count; ++i, rgb += 3) {
      const int64_t bit = int64_t{i} * depth_;
      const int index = raw[bit / 8] >> (8 - depth_ - bit % 8) & mask;
      known = known && index < num_colours_;
      std::memcpy(rgb, table_[index].data(), 3);
    }
    return known;
  }

  void expand_alpha(const uint8_t* raw, int32_t count, uint8_t* rgb) const {
    const int bytes = depth_ / 8;  // the high byte of 16 bits comes first
    const int colours = channels_ - 1;
    if (colours_ != nullptr) {
      expand_colours(raw, count, colours, rgb);
      for (int32_t i = 0; i < count; ++i, raw += channels_ * bytes, rgb += 3) {
        for (int c = 0; c < 3; ++c) rgb[c] = blend(rgb[c], background_[c], raw[colours * bytes]);
      }
      return;
    }
    for (int32_t i = 0; i < count; ++i, raw += channels_ * bytes, rgb += 3) {
      const uint8_t alpha = raw[colours * bytes];
      for (int c = 0; c < 3; ++c) rgb[c] = blend(raw[colours == 3 ? c * bytes : 0], background_[c], alpha);
    }
  }

  /// Converted; `colours` of each pixel's samples are colours, and grey ones are spread.
  void expand_colours(const uint8_t* raw, int32_t count, int colours, uint8_t* rgb) const {
    const int bytes = depth_ / 8;
    for (int32_t i = 0; i < count; ++i, raw += channels_ * bytes) {
      for (int c = 0; c < 3; ++c) rgb[3 * i + c] = raw[colours == 3 ? c * bytes : 0];
    }
    convert(rgb, count);
  }

  void expand_opaque(const uint8_t* raw, int32_t count, uint8_t* rgb) const {
    const int bytes = depth_ / 8;
    expand_colours(raw, count, channels_, rgb);
    if (!key_) return;
    for (int32_t i = 0; i < count; ++i, raw += channels_ * bytes, rgb += 3) {
      if (is_key(raw, bytes)) std::memcpy(rgb, background_.data(), 3);
    }
  }

  bool is_key(const uint8_t* raw, int bytes) const {
    for (int c = 0; c < channels_; ++c, raw += bytes) {
      const int value = bytes == 2 ? raw[0] << 8 | raw[1] : raw[0];
      if (value != (*key_)[c]) return false;
    }
    return true;
  }

  PngColour colour_;
  int depth_;
  int channels_;
  Rgb background_;
  const SrgbTransform* colours_;  ///< null: as they are stored
  std::optional<Key> key_;        ///< the sample values that tRNS hides
  std::array<Rgb, 256> table_{};
  int num_colours_ = 0;
};

std::string header_problem(const PngFile& file) {
  if (file.colour == PngColour::kPalette && file.palette.empty()) return "png: palette image without PLTE";
  const int64_t row_bytes = (int64_t{file.info.width} * file.channels() * file.bit_depth + 7) / 8;
  if (row_bytes * file.info.height > (file.idat_bytes + 1) * kMaxDeflateRatio) {
    return fmt::format("png: IHDR: {} x {} pixels do not fit into {} bytes of data", file.info.width,
                       file.info.height, file.idat_bytes);
  }
  return {};
}

/// Pixels of one row, at x = first, first + step, ...
struct PngRow {
  int32_t y = 0;
  const uint8_t* rgb = nullptr;
  int32_t count = 0;
  int32_t first = 0;
  int32_t step = 1;
};
using TakeRow = std::function<void(const PngRow&)>;

std::string decode_rows(spng_ctx* context, const PngFile& file, const PngLook& look, const TakeRow& take) {
  const int32_t width = file.info.width;
  const bool interlaced = (file.info.flags & kInterlaced) != 0;
  const RowExpander expander(file, look);
  std::vector<uint8_t> raw((static_cast<size_t>(width) * file.channels() * file.bit_depth + 7) / 8 + 8);
  std::vector<uint8_t> rgb(static_cast<size_t>(width) * 3);
  int code = spng_decode_image(context, nullptr, 0, SPNG_FMT_RAW, SPNG_DECODE_PROGRESSIVE);
  spng_row_info row{};
  while (code == SPNG_OK) {
    code = spng_get_row_info(context, &row);
    if (code != SPNG_OK) break;
    code = spng_decode_scanline(context, raw.data(), raw.size());
    if (code != SPNG_OK && code != SPNG_EOI) break;
    const int32_t first = interlaced ? kAdamFirstX[row.pass] : 0;
    const int32_t step = interlaced ? kAdamStepX[row.pass] : 1;
    const int32_t count = (width - first + step - 1) / step;
    if (!expander.expand(raw.data(), count, rgb.data())) {
      return fmt::format("png: row {}: colour index beyond the palette", row.row_num);
    }
    take({static_cast<int32_t>(row.row_num), rgb.data(), count, first, step});
  }
  // The checksum of the last IDAT is only looked at on the way to the next chunk.
  if (code == SPNG_EOI) code = spng_decode_chunks(context);
  return code == SPNG_OK ? std::string() : fmt::format("png: row {}: {}", row.row_num, spng_strerror(code));
}

/// `start` is called once the header has passed, before the first row. salvage: checksums are not looked at.
std::string decode_file(const PngFile& file, const PngLook& look, const std::function<void()>& start,
                        const TakeRow& take, bool salvage = false) {
  if (auto problem = header_problem(file); !problem.empty()) return problem;
  PartStream stream(file);
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(0), &spng_ctx_free);
  CHILIAD_CHECK(context != nullptr, "libspng gave no context");
  if (salvage) spng_set_crc_action(context.get(), SPNG_CRC_USE, SPNG_CRC_USE);
  if (const int code = spng_set_png_stream(context.get(), &PartStream::read, &stream); code != SPNG_OK)
    return fmt::format("png: {}", spng_strerror(code));
  // The header is checked here so that nothing is allocated for one that libspng would refuse.
  spng_ihdr ihdr{};
  if (const int code = spng_get_ihdr(context.get(), &ihdr); code != SPNG_OK)
    return fmt::format("png: IHDR: {}", spng_strerror(code));
  start();
  return decode_rows(context.get(), file, look, take);
}

}  // namespace

Outcome<HostArray> decode_png(const PngFile& file, const PngLook& look) {
  std::optional<RowSink> sink;
  auto problem = decode_file(
      file, look, [&] { sink.emplace(file.info.width, file.info.height, file.info.orientation); },
      [&](const PngRow& row) { sink->write(row.y, row.rgb, row.count, row.first, row.step); });
  if (!problem.empty()) return refuse<HostArray>(std::move(problem));
  return {sink->take(), {}};
}

std::optional<HostArray> salvage_png(const PngFile& file, const PngLook& look) {
  std::optional<RowSink> sink;
  static_cast<void>(decode_file(
      file, look, [] {},
      [&](const PngRow& row) {
        if (!sink) sink.emplace(file.info.width, file.info.height, file.info.orientation);
        sink->write(row.y, row.rgb, row.count, row.first, row.step);
      },
      true));
  if (!sink) return std::nullopt;
  return sink->take();
}

std::string decode_png(const PngFile& file, const PngLook& look, const Window& window, RowStage& out) {
  CHILIAD_CHECK((file.info.flags & kInterlaced) == 0, "rows of an interlaced file have no order");
  auto problem = decode_file(
      file, look, [] {},
      [&](const PngRow& row) {
        if (row.y >= window.top && row.y < window.top + window.height)
          out.push(row.rgb + int64_t{3} * window.left);
      });
  if (problem.empty()) out.finish();
  return problem;
}

}  // namespace chiliad::image::detail
