#pragma once

#include "chiliad/base/host_array.h"
#include "tests/support/picture_bytes.h"

namespace chiliad::test {

struct JpegVariant {
  int h_sampling = 2;  ///< of luma; chroma has 1
  int v_sampling = 2;
  bool progressive = false;
  bool grey = false;
  bool arithmetic = false;
  int restart_rows = 0;  ///< a restart marker after so many rows of blocks; 0: none
  int quality = 90;
};

/// A JPEG of uint8 [H, W, 3] in a form that the product itself never writes.
[[nodiscard]] ByteVector jpeg_variant(const HostArray& picture, const JpegVariant& variant);

}  // namespace chiliad::test
