#include "tests/support/jpeg_variants.h"

#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>

namespace chiliad::test {

ByteVector jpeg_variant(const HostArray& picture, const JpegVariant& variant) {
  jpeg_compress_struct cinfo{};
  jpeg_error_mgr errors{};
  cinfo.err = jpeg_std_error(&errors);
  jpeg_create_compress(&cinfo);
  unsigned char* out = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&cinfo, &out, &size);
  cinfo.image_height = static_cast<JDIMENSION>(picture.shape()[0]);
  cinfo.image_width = static_cast<JDIMENSION>(picture.shape()[1]);
  cinfo.input_components = 3;
  cinfo.in_color_space = JCS_RGB;
  jpeg_set_defaults(&cinfo);
  if (variant.grey) jpeg_set_colorspace(&cinfo, JCS_GRAYSCALE);
  jpeg_set_quality(&cinfo, variant.quality, TRUE);
  if (!variant.grey) {
    cinfo.comp_info[0].h_samp_factor = variant.h_sampling;
    cinfo.comp_info[0].v_samp_factor = variant.v_sampling;
  }
  cinfo.restart_in_rows = variant.restart_rows;
  cinfo.arith_code = static_cast<boolean>(variant.arithmetic);
  if (variant.progressive) jpeg_simple_progression(&cinfo);
  jpeg_start_compress(&cinfo, TRUE);
  auto* pixels = const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(picture.data()));
  while (cinfo.next_scanline < cinfo.image_height) {
    JSAMPROW row[1] = {pixels + size_t{3} * cinfo.next_scanline * cinfo.image_width};
    jpeg_write_scanlines(&cinfo, row, 1);
  }
  jpeg_finish_compress(&cinfo);
  jpeg_destroy_compress(&cinfo);
  const auto* bytes = reinterpret_cast<const std::byte*>(out);
  ByteVector made(bytes, bytes + size);
  std::free(out);
  return made;
}

}  // namespace chiliad::test
