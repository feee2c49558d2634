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
#include "chiliad/image/detail/row_sink.h"

namespace chiliad::image::detail {
namespace {

// A file can repeat scans without end at a few bytes each, every one a pass over the whole picture.
constexpr int kMaxScans = 100;

/// libjpeg's error manager with the way back; the first member so that a pointer to one is a pointer to the
/// other.
struct ErrorManager {
  jpeg_error_mgr base;
  jmp_buf back;
  bool damaged;
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

/// Warnings (level -1) are where libjpeg starts to guess; the first one becomes the reason.
void note_warning(j_common_ptr cinfo, int level) {
  if (level >= 0 || is_about_metadata(cinfo->err->msg_code)) return;
  ErrorManager& errors = manager_of(cinfo);
  if (cinfo->err->msg_code == JWRN_JPEG_EOF) {
    errors.end_missing = true;
    return;
  }
  if (!errors.damaged) cinfo->err->format_message(cinfo, errors.reason);
  errors.damaged = true;
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
    errors_.base.emit_message = note_warning;
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
  [[nodiscard]] bool start() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_start_decompress(&cinfo_);
    return true;
  }
  [[nodiscard]] bool read_row(uint8_t* row) {
    if (setjmp(errors_.back) != 0) return false;
    JSAMPROW rows[1] = {row};
    jpeg_read_scanlines(&cinfo_, rows, 1);
    return true;
  }
  /// Reads on to the EOI marker, so that damage after the last row's own data is seen too.
  [[nodiscard]] bool finish() {
    if (setjmp(errors_.back) != 0) return false;
    jpeg_finish_decompress(&cinfo_);
    return true;
  }
  [[nodiscard]] const jpeg_decompress_struct& info() const { return cinfo_; }
  [[nodiscard]] bool damaged() const { return errors_.damaged; }
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

Outcome<HostArray> fail(const Decompressor& decompressor) {
  const int64_t row = decompressor.info().output_scanline;
  return refuse<HostArray>(fmt::format("jpeg: row {}: {}", row, decompressor.reason()));
}

/// Reads all rows into the sink; false where libjpeg gave up.
bool read_rows(Decompressor& decompressor, const Info& stored, RowSink& sink) {
  const bool cmyk = decompressor.info().out_color_space == JCS_CMYK;
  std::vector<uint8_t> row(static_cast<size_t>(stored.width) * 4);
  std::vector<uint8_t> rgb(cmyk ? static_cast<size_t>(stored.width) * 3 : 0);
  for (int32_t y = 0; y < stored.height; ++y) {
    if (!decompressor.read_row(row.data())) return false;
    if (cmyk) cmyk_to_rgb(row.data(), rgb.data(), stored.width);
    sink.write(y, cmyk ? rgb.data() : row.data(), stored.width);
    if (decompressor.damaged()) return false;
  }
  return true;
}

}  // namespace

Outcome<HostArray> decode_jpeg(std::span<const std::byte> bytes, const Info& stored, int64_t max_bytes) {
  Decompressor decompressor;
  if (!decompressor.read_header(bytes))
    return refuse<HostArray>(fmt::format("jpeg: header: {}", decompressor.reason()));
  const auto& info = decompressor.info();
  if (static_cast<int64_t>(info.image_width) != stored.width ||
      static_cast<int64_t>(info.image_height) != stored.height) {
    return refuse<HostArray>("jpeg: header: two frames of different sizes");
  }
  if (auto reason = cost_refusal(decompressor, bytes.size(), max_bytes); !reason.empty()) {
    return refuse<HostArray>(std::move(reason));
  }
  const bool many_scans = jpeg_has_multiple_scans(const_cast<j_decompress_ptr>(&info)) != 0;
  if (!decompressor.start() || decompressor.damaged()) return fail(decompressor);
  if (many_scans && !(coefficients_complete(info) && all_components_scanned(bytes))) {
    return refuse<HostArray>("jpeg: scans are missing: coefficients incomplete");
  }
  RowSink sink(stored.width, stored.height, stored.orientation);
  if (!read_rows(decompressor, stored, sink)) return fail(decompressor);
  if (!decompressor.finish() || decompressor.damaged()) return fail(decompressor);
  // Huffman data that ends early is warned about on its own; arithmetic decoding goes on with zeros and says
  // nothing.
  if (decompressor.end_missing() && info.arith_code != 0)
    return refuse<HostArray>("jpeg: arithmetic-coded data ends early");
  return {sink.take(), {}};
}

}  // namespace chiliad::image::detail
