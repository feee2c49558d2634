#include <gtest/gtest.h>

#include <jpeglib.h>
#include <cstdio>
#include <cstdlib>

#include "chiliad/image/image.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::image {
namespace {

/// A baseline JPEG with one scan for each component.
test::ByteVector three_scans(const HostArray& picture) {
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
  jpeg_scan_info scans[3] = {};
  for (int i = 0; i < 3; ++i)
    scans[i] = {.comps_in_scan = 1, .component_index = {i}, .Ss = 0, .Se = 63, .Ah = 0, .Al = 0};
  cinfo.scan_info = scans;
  cinfo.num_scans = 3;
  jpeg_start_compress(&cinfo, TRUE);
  for (int64_t y = 0; y < picture.shape()[0]; ++y) {
    auto copy = picture.clone();
    JSAMPROW row[1] = {copy.as<uint8_t>().data() + y * picture.shape()[1] * 3};
    jpeg_write_scanlines(&cinfo, row, 1);
  }
  jpeg_finish_compress(&cinfo);
  const auto* first = reinterpret_cast<const std::byte*>(out);
  test::ByteVector bytes(first, first + size);
  jpeg_destroy_compress(&cinfo);
  std::free(out);
  return bytes;
}

size_t last_scan_begin(const test::ByteVector& jpeg) {
  for (size_t at = jpeg.size() - 1; at > 0; --at) {
    if (jpeg[at - 1] == std::byte{0xff} && jpeg[at] == std::byte{0xda}) return at - 1;
  }
  return 0;
}

TEST(ScansTest, OneScanForEachComponentIsDecoded) {
  const auto outcome = decode(three_scans(test::sloped_picture(40, 24)), {});
  EXPECT_TRUE(outcome) << outcome.reason;
}

TEST(ScansTest, AMissingScanIsRefused) {
  auto jpeg = three_scans(test::sloped_picture(40, 24));
  jpeg.erase(jpeg.begin() + static_cast<ptrdiff_t>(last_scan_begin(jpeg)), jpeg.end() - 2);
  EXPECT_NE(decode(jpeg, {}).reason.find("scans are missing"), std::string::npos) << decode(jpeg, {}).reason;
}

TEST(ScansTest, ScansWithoutEndAreRefused) {
  auto jpeg = three_scans(test::sloped_picture(40, 24));
  const test::ByteVector scan(jpeg.begin() + static_cast<ptrdiff_t>(last_scan_begin(jpeg)), jpeg.end() - 2);
  for (int i = 0; i < 200; ++i) jpeg.insert(jpeg.end() - 2, scan.begin(), scan.end());
  EXPECT_NE(decode(jpeg, {}).reason.find("more than 100 scans"), std::string::npos)
      << decode(jpeg, {}).reason;
}

}  // namespace
}  // namespace chiliad::image
