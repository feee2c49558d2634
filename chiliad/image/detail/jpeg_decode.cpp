#include <fmt/core.h>

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <vector>

#include <jpeglib.h>
// jerror.h needs jpeglib.h before it.
#include <jerror.h>

#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/limits.h"

namespace chiliad::image::detail {
namespace {

// A file can repeat scans without end at a few bytes each, every one a pass over the whole picture.
constexpr int kMaxScans = 100;

/// libjpeg's error manager with the way back; the first member so that a pointer to one is a pointer to the
/// other.
struct ErrorManager {
  jpeg_error_mgr base;
  jmp_buf back;
  bool end_missing;  ///< the EOI marker is not there, which alone costs no pixel
  char reason[JMSG_LENGTH_MAX + 64];
};

ErrorManager& manager_of(j_common_ptr cinfo) {
  return *reinterpret_cast<ErrorManager*>(cinfo->err);
}

[[noreturn]] void give_up(j_common_ptr cinfo) {
  ErrorManager& errors = manager_of(cinfo);
  cinfo->err->format_message(cinfo, errors.reason);
  std::longjmp(errors.back, 1);
}

bool is_about_metadata(int code) {
  return code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM || code == JWRN_BOGUS_ICC;
}

/// Warnings (level -1) are where libjpeg starts to guess: they end the decode like errors.
void refuse_warning(j_common_ptr cinfo, int level) {
  if (level >= 0 || is_about_metadata(cinfo->err->msg_code)) return;
  if (cinfo->err->msg_code == JWRN_JPEG_EOF) {
    manager_of(cinfo).end_missing = true;
    return;
  }
  give_up(cinfo);
}

void stop_after_many_scans(j_common_ptr cinfo) {
  if (!cinfo->is_decompressor) return;
  if (reinterpret_cast<j_decompress_ptr>(cinfo)->input_scan_number <= kMaxScans) return;
  ErrorManager& errors = manager_of(cinfo);
  std::snprintf(errors.reason, sizeof(errors.reason), "more than %d scans", kMaxScans);
  std::longjmp(errors.back, 1);
}

/// Owns the decompressor; every call into libjpeg happens in a function of this class that sets the way back
/// and has no objects with destructors.
class Decompressor {
 public:
  Decompressor() {
    cinfo_.err = jpeg_std_error(&errors_.base);
    errors_.base.error_exit = give_up;
    errors_.base.emit_message = refuse_warning;
    errors_.base.output_message = [](j_common_ptr) {};
    progress_.progress_monitor = stop_after_many_scans;
  }
  ~Decompressor() { jpeg_destroy_decompress(&cinfo_); }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  [[nodiscard]] bool read_header(std::span<const std::byte> bytes) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_create_decompress(&cinfo_);
    cinfo_.progress = &progress_;
    jpeg_mem_src(&cinfo_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
    jpeg_read_header(&cinfo_, TRUE);
    cinfo_.out_color_space = cinfo_.num_components == 4 ? JCS_CMYK : JCS_RGB;
    return true;
  }
  [[nodiscard]] bool start(int denominator) {
    if (setjmp(errors_.back) != 0) return false;
    cinfo_.scale_num = 1;
    cinfo_.scale_denom = static_cast<unsigned>(denominator);
    jpeg_start_decompress(&cinfo_);
    return true;
  }
  /// Leaves out columns; both are widened to whole blocks.
  [[nodiscard]] bool keep_columns(JDIMENSION& left, JDIMENSION& width) {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_crop_scanline(&cinfo_, &left, &width);
    return true;
  }
  [[nodiscard]] bool skip_rows(JDIMENSION count) {
    if (count == 0) return true;
    if (setjmp(errors_.back) != 0) return false;
    jpeg_skip_scanlines(&cinfo_, count);
    return true;
  }
  /// 0 where libjpeg gave up.
  [[nodiscard]] int read_rows(uint8_t* const* rows, int count) {
    if (setjmp(errors_.back) != 0) return 0;
    return static_cast<int>(
        jpeg_read_scanlines(&cinfo_, const_cast<JSAMPARRAY>(rows), static_cast<JDIMENSION>(count)));
  }
  /// Reads on to the EOI marker, so that damage after the last row's own data is seen too.
  [[nodiscard]] bool finish() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_finish_decompress(&cinfo_);
    return true;
  }
  [[nodiscard]] const jpeg_decompress_struct& info() const { return cinfo_; }
  [[nodiscard]] bool end_missing() const { return errors_.end_missing; }
  [[nodiscard]] const char* reason() const { return errors_.reason; }

 private:
  jpeg_decompress_struct cinfo_{};
  ErrorManager errors_{};
  jpeg_progress_mgr progress_{};
};

int64_t total_blocks(const jpeg_decompress_struct& info) {
  int64_t blocks = 0;
  for (int i = 0; i < info.num_components; ++i) {
    const auto& component = info.comp_info[i];
    const int64_t wide =
        (int64_t{info.image_width} * component.h_samp_factor + 8 * info.max_h_samp_factor - 1) /
        (8 * info.max_h_samp_factor);
    const int64_t tall =
        (int64_t{info.image_height} * component.v_samp_factor + 8 * info.max_v_samp_factor - 1) /
        (8 * info.max_v_samp_factor);
    blocks += wide * tall;
  }
  return blocks;
}

/// Checks that need no allocation: data enough for the claimed rows, coefficients inside the limit.
std::string cost_refusal(Decompressor& decompressor, size_t num_bytes, int64_t max_bytes) {
  const auto& info = decompressor.info();
  const int64_t blocks = total_blocks(info);
  // A Huffman code has at least one bit and each block has at least one code; arithmetic coding can do with
  // less.
  if (info.arith_code == 0 && blocks > 8 * static_cast<int64_t>(num_bytes)) {
    return fmt::format("jpeg: header: {} x {} pixels do not fit into {} bytes of data", info.image_width,
                       info.image_height, num_bytes);
  }
  const int64_t coefficient_bytes = blocks * 64 * static_cast<int64_t>(sizeof(JCOEF));
  if (jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info)) && coefficient_bytes > max_bytes) {
    return fmt::format(
        "jpeg: header: too large: expected at most {} bytes, got {} for the coefficients of its scans",
        max_bytes, coefficient_bytes);
  }
  return {};
}

/// Whether all bits of all coefficients of a progressive file have come.
bool coefficients_complete(const jpeg_decompress_struct& info) {
  if (info.coef_bits == nullptr) return true;
  for (int component = 0; component < info.num_components; ++component) {
    for (int k = 0; k < DCTSIZE2; ++k) {
      if (info.coef_bits[component][k] != 0) return false;
    }
  }
  return true;
}

/// libjpeg gives CMYK as stored, and Adobe stores ink inverted; Pillow takes it so with or without its
/// marker.
void cmyk_to_rgb(const uint8_t* cmyk, uint8_t* rgb, int32_t count) {
  for (int32_t i = 0; i < count; ++i, cmyk += 4, rgb += 3) {
    const int light = cmyk[3];
    for (int c = 0; c < 3; ++c) {
      const int product = (255 - cmyk[c]) * light + 128;
      rgb[c] = static_cast<uint8_t>(std::max(0, light - ((product + (product >> 8)) >> 8)));
    }
  }
}

std::string failure(const Decompressor& decompressor) {
  return fmt::format("jpeg: row {}: {}", decompressor.info().output_scanline, decompressor.reason());
}

// Smooth upsampling looks at the neighbours of a column, which a cut hides.
constexpr int32_t kMargin = 4;

/// Passes over rows, looking at their data all the same.
bool pass_over(Decompressor& decompressor, int32_t count, uint8_t* room) {
  // Skipping is for Huffman codes alone.
  const int32_t num_read = decompressor.info().arith_code != 0 ? count : 0;
  for (int32_t i = 0; i < num_read; ++i) {
    if (decompressor.read_rows(&room, 1) == 0) return false;
  }
  return count == num_read || decompressor.skip_rows(static_cast<JDIMENSION>(count - num_read));
}

/// A row as libjpeg gives it to RGB8, in place. colours: null: as they are stored.
void make_rgb(const jpeg_decompress_struct& info, const SrgbTransform* colours, uint8_t* row) {
  const auto width = static_cast<int32_t>(info.output_width);
  const bool is_ink = info.out_color_space == JCS_CMYK;
  if (colours == nullptr) {
    if (is_ink) cmyk_to_rgb(row, row, width);
  } else if (is_ink) {
    const std::vector<uint8_t> ink(row, row + 4 * static_cast<size_t>(width));
    colours->convert(ink.data(), row, width);
  } else {
    colours->convert(row, row, width);
  }
}

/// Reads `num_rows` rows into `rows`. Returns how many: fewer where libjpeg gave up.
int fill_block(Decompressor& decompressor, const SrgbTransform* colours, uint8_t* const* rows, int num_rows) {
  int got = 0;
  while (got < num_rows) {
    const int count = decompressor.read_rows(rows + got, num_rows - got);
    if (count == 0) break;
    got += count;
  }
  for (int i = 0; i < got; ++i) make_rgb(decompressor.info(), colours, rows[i]);
  return got;
}

/// Reads the window's rows and pushes them; false where libjpeg gave up.
bool read_window(Decompressor& decompressor, const Window& window, const SrgbTransform* colours,
                 RowStage& out) {
  const auto& info = decompressor.info();
  const auto all_width = static_cast<int32_t>(info.output_width);
  auto left = static_cast<JDIMENSION>(std::max(0, window.left - kMargin));
  auto width = static_cast<JDIMENSION>(std::min(all_width, window.left + window.width + kMargin)) - left;
  if (static_cast<int32_t>(width) < all_width && !decompressor.keep_columns(left, width)) return false;
  const size_t stride = static_cast<size_t>(info.output_width) * (info.out_color_space == JCS_CMYK ? 4 : 3);
  std::vector<uint8_t> memory(stride * kBlockRows);
  uint8_t* rows[kBlockRows];
  const uint8_t* kept[kBlockRows];
  for (int i = 0; i < kBlockRows; ++i) {
    rows[i] = memory.data() + stride * static_cast<size_t>(i);
    kept[i] = rows[i] + int64_t{3} * (window.left - static_cast<int32_t>(left));
  }
  if (!pass_over(decompressor, window.top, rows[0])) return false;
  for (int32_t y = 0; y < window.height; y += kBlockRows) {
    const int count = std::min(kBlockRows, window.height - y);
    const int got = fill_block(decompressor, colours, rows, count);
    out.push(kept, got);
    if (got < count) return false;
  }
  // The last row is read, not skipped: libjpeg would not look at the data before it.
  const int32_t below = static_cast<int32_t>(info.output_height) - window.top - window.height;
  if (below == 0) return true;
  return pass_over(decompressor, below - 1, rows[0]) && decompressor.read_rows(rows, 1) == 1;
}

}  // namespace

std::string decode_jpeg(std::span<const std::byte> bytes, const JpegRequest& request, RowStage& out) {
  Decompressor decompressor;
  if (!decompressor.read_header(bytes)) return fmt::format("jpeg: header: {}", decompressor.reason());
  const auto& info = decompressor.info();
  if (static_cast<int64_t>(info.image_width) != request.stored.width ||
      static_cast<int64_t>(info.image_height) != request.stored.height) {
    return "jpeg: header: two frames of different sizes";
  }
  if (auto reason = cost_refusal(decompressor, bytes.size(), request.max_bytes); !reason.empty())
    return reason;
  const bool many_scans = jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info)) != 0;
  if (!decompressor.start(request.denominator)) return failure(decompressor);
  if (many_scans && !(coefficients_complete(info) && all_components_scanned(bytes)))
    return "jpeg: scans are missing: coefficients incomplete";
  Window window = request.window;
  if (window.width == 0)
    window = {0, 0, static_cast<int32_t>(info.output_width), static_cast<int32_t>(info.output_height)};
  if (!read_window(decompressor, window, request.colours, out)) return failure(decompressor);
  if (!decompressor.finish()) return failure(decompressor);
  // Huffman data that ends early is warned about on its own; arithmetic decoding goes on with zeros and says
  // nothing.
  if (decompressor.end_missing() && info.arith_code != 0) return "jpeg: arithmetic-coded data ends early";
  out.finish();
  return {};
}

}  // namespace chiliad::image::detail
