#include "chiliad/image/detail/orientation.h"

#include "chiliad/base/planted.h"

namespace chiliad::image::detail {

uint8_t orientation_to_apply(uint8_t orientation) {
  return planted_bug("exif_ignored") ? uint8_t{1} : orientation;
}

}  // namespace chiliad::image::detail
