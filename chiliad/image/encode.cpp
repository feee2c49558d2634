#include "chiliad/image/encode.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include <spng.h>

#include "chiliad/base/error.h"
#include "chiliad/image/detail/jpeg_errors.h"
#include "chiliad/image/detail/library_memory.h"

namespace chiliad::image {
namespace {

using detail::copy_of;
using detail::FreeMemory;
using detail::JpegErrors;

void check_picture(const HostArray& picture) {
  CHILIAD_CHECK(picture.dtype() == DType::kU8 && picture.shape().rank() == 3 && picture.shape()[2] == 3 &&
                    picture.count() > 0,
                "expected uint8 [H, W, 3], got {}", picture.shape().to_string());
}

/// No objects with destructors here: libjpeg leaves by longjmp.
bool compress(jpeg_compress_struct& cinfo, JpegErrors& errors, const HostArray& picture, int quality,
              std::span<const std::byte> profile, unsigned char*& out, unsigned long& size) {
  if (setjmp(errors.back) != 0) return false;
  jpeg_create_compress(&cinfo);
  jpeg_mem_dest(&cinfo, &out, &size);
  cinfo.image_height = static_cast<JDIMENSION>(picture.shape()[0]);
  cinfo.image_width = static_cast<JDIMENSION>(picture.shape()[1]);
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);
  jpeg_set_quality(&cinfo, quality, TRUE);
  jpeg_start_compress(&cinfo, TRUE);
  if (!profile.empty())
    jpeg_write_icc_profile(&cinfo, reinterpret_cast<const JOCTET*>(profile.data()),
                           static_cast<unsigned>(profile.size()));
  auto* pixels = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(picture.data()));
  while (cinfo.next_scanline < cinfo.image_height) {
    JSAMPROW row[1] = {pixels + static_cast<size_t>(cinfo.next_scanline) * cinfo.image_width * 3};
    jpeg_write_scanlines(&cinfo, row, 1);
  }
  jpeg_finish_compress(&cinfo);
  return true;
}

}  // namespace

std::vector<std::byte> encode_png(const HostArray& picture, std::span<const std::byte> profile) {
  check_picture(picture);
  const std::unique_ptr<spng_ctx, decltype(&spng_ctx_free)> context(spng_ctx_new(SPNG_CTX_ENCODER),
                                                                    &spng_ctx_free);
  CHILIAD_CHECK(context != nullptr, "libspng gave no context");
  spng_ihdr ihdr{};
  ihdr.width = static_cast<uint32_t>(picture.shape()[1]);
  ihdr.height = static_cast<uint32_t>(picture.shape()[0]);
  ihdr.bit_depth = 8;
  ihdr.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
  int code = spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  if (code == SPNG_OK) code = spng_set_option(context.get(), SPNG_IMG_COMPRESSION_LEVEL, 6);
  if (code == SPNG_OK) code = spng_set_ihdr(context.get(), &ihdr);
  if (code == SPNG_OK && !profile.empty()) {
    spng_iccp iccp{};
    std::strcpy(iccp.profile_name, "icc");
    iccp.profile_len = profile.size();
    iccp.profile = const_cast<char*>(reinterpret_cast<const char*>(profile.data()));
    code = spng_set_iccp(context.get(), &iccp);
  }
  if (code == SPNG_OK) {
    code = spng_encode_image(context.get(), picture.data(), static_cast<size_t>(picture.num_bytes()),
                             SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  }
  size_t size = 0;
  const std::unique_ptr<void, FreeMemory> memory(
      code == SPNG_OK ? spng_get_png_buffer(context.get(), &size, &code) : nullptr);
  CHILIAD_CHECK(code == SPNG_OK && memory != nullptr, "encode_png: {}", spng_strerror(code));
  return copy_of(memory.get(), size);
}

std::vector<std::byte> encode_jpeg(const HostArray& picture, int quality,
                                   std::span<const std::byte> profile) {
  check_picture(picture);
  CHILIAD_CHECK(quality >= 1 && quality <= 100, "quality {}", quality);
  jpeg_compress_struct cinfo{};
  JpegErrors errors{};
  cinfo.err = jpeg_std_error(&errors.base);
  errors.base.error_exit = detail::give_up;
  errors.base.output_message = [](j_common_ptr) {};
  unsigned char* out = nullptr;
  unsigned long size = 0;
  const bool done = compress(cinfo, errors, picture, quality, profile, out, size);
  jpeg_destroy_compress(&cinfo);
  const std::unique_ptr<void, FreeMemory> memory(out);
  CHILIAD_CHECK(done, "encode_jpeg: {}", errors.reason);
  return copy_of(out, size);
}

}  // namespace chiliad::image
