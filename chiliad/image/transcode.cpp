#include "chiliad/image/transcode.h"

#include <fmt/core.h>

#include <csetjmp>
#include <cstdio>
#include <memory>

#include "chiliad/image/detail/jpeg.h"
#include "chiliad/image/detail/jpeg_errors.h"
#include "chiliad/image/detail/library_memory.h"

namespace chiliad::image {
namespace {

using detail::FreeMemory;
using detail::give_up;
using detail::JpegErrors;

/// A warning is data that would be guessed.
void on_message(j_common_ptr info, int level) {
  if (level < 0) give_up(info);
}

/// Markers that the library writes itself.
bool is_written(const jpeg_compress_struct& out, const jpeg_marker_struct& marker) {
  const auto begins = [&](const char* text, unsigned size) {
    if (marker.data_length < size) return false;
    for (unsigned i = 0; i < size; ++i) {
      if (marker.data[i] != static_cast<unsigned char>(text[i])) return false;
    }
    return true;
  };
  if (out.write_JFIF_header && marker.marker == JPEG_APP0 && begins("JFIF\0", 5)) return true;
  return out.write_Adobe_marker && marker.marker == JPEG_APP0 + 14 && begins("Adobe", 5);
}

/// A file can repeat scans without end at a few bytes each.
void stop_after_many_scans(j_common_ptr info) {
  constexpr int kMaxScans = 1000;
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMaxScans) return;
  auto& errors = *reinterpret_cast<JpegErrors*>(info->err);
  std::snprintf(errors.reason, sizeof errors.reason, "more than %d scans", kMaxScans);
  std::longjmp(errors.back, 1);
}

struct Codecs {
  jpeg_decompress_struct in{};
  jpeg_compress_struct out{};
  JpegErrors errors{};
  jpeg_progress_mgr progress{};
};

/// No objects with destructors here: libjpeg leaves by longjmp.
bool transcode(Codecs& codecs, std::span<const std::byte> bytes, unsigned char*& memory,
               unsigned long& size) {
  constexpr int kMarkers = 16;
  constexpr unsigned kWholeMarker = 0xFFFF;
  if (setjmp(codecs.errors.back) != 0) return false;
  jpeg_create_decompress(&codecs.in);
  jpeg_create_compress(&codecs.out);
  codecs.in.progress = &codecs.progress;
  jpeg_mem_src(&codecs.in, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  for (int i = 0; i < kMarkers; ++i) jpeg_save_markers(&codecs.in, JPEG_APP0 + i, kWholeMarker);
  jpeg_save_markers(&codecs.in, JPEG_COM, kWholeMarker);
  jpeg_read_header(&codecs.in, TRUE);
  jvirt_barray_ptr* coefficients = jpeg_read_coefficients(&codecs.in);
  jpeg_copy_critical_parameters(&codecs.in, &codecs.out);
  codecs.out.optimize_coding = TRUE;
  codecs.out.arith_code = FALSE;
  // A marker that the file has not would change how its components are read.
  codecs.out.write_JFIF_header = codecs.in.saw_JFIF_marker;
  codecs.out.write_Adobe_marker = codecs.in.saw_Adobe_marker;
  jpeg_mem_dest(&codecs.out, &memory, &size);
  jpeg_write_coefficients(&codecs.out, coefficients);
  for (auto* marker = codecs.in.marker_list; marker != nullptr; marker = marker->next) {
    if (!is_written(codecs.out, *marker))
      jpeg_write_marker(&codecs.out, marker->marker, marker->data, marker->data_length);
  }
  jpeg_finish_compress(&codecs.out);
  jpeg_finish_decompress(&codecs.in);
  return true;
}

}  // namespace

Outcome<std::vector<std::byte>> to_baseline_jpeg(std::span<const std::byte> bytes, const Limits& limits) {
  const auto info = probe(bytes, limits);
  if (!info) return {std::nullopt, info.reason};
  if (info.value->format != Format::kJpeg) return {std::nullopt, "expected a JPEG"};
  if (!detail::all_components_scanned(bytes)) return {std::nullopt, "a component has no scan"};
  constexpr int64_t kBytesAPixel = 6;  // three components of 16 bits
  const int64_t coefficient_bytes = int64_t{info.value->width} * info.value->height * kBytesAPixel;
  if (coefficient_bytes > 2 * limits.max_bytes) {
    return {std::nullopt, fmt::format("expected at most {} bytes of coefficients, got {}",
                                      2 * limits.max_bytes, coefficient_bytes)};
  }
  Codecs codecs;
  codecs.progress.progress_monitor = stop_after_many_scans;
  codecs.in.err = jpeg_std_error(&codecs.errors.base);
  codecs.out.err = &codecs.errors.base;
  codecs.errors.base.error_exit = give_up;
  codecs.errors.base.emit_message = on_message;
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  const bool done = transcode(codecs, bytes, memory, size);
  jpeg_destroy_compress(&codecs.out);
  jpeg_destroy_decompress(&codecs.in);
  const std::unique_ptr<void, FreeMemory> owner(memory);
  if (!done) return {std::nullopt, codecs.errors.reason};
  return {detail::copy_of(memory, size), ""};
}

}  // namespace chiliad::image
