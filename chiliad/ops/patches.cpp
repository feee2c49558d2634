#include "chiliad/ops/patches.h"

#include <ATen/ATen.h>

namespace chiliad::ops {

at::Tensor patches_of(const at::Tensor& image, int64_t patch) {
  const int64_t rows = image.size(2) / patch;
  const int64_t columns = image.size(3) / patch;
  return image.reshape({image.size(0), image.size(1), rows, patch, columns, patch})
      .permute({0, 2, 4, 1, 3, 5})
      .reshape({image.size(0), rows * columns, -1});
}

at::Tensor image_of(const at::Tensor& patches, int64_t rows, int64_t columns, int64_t patch,
                    PatchOrder order) {
  const int64_t items = patches.size(0);
  const int64_t channels = patches.size(2) / (patch * patch);
  const at::Tensor image =
      order == PatchOrder::kChannelFirst
          ? patches.reshape({items, rows, columns, channels, patch, patch}).permute({0, 3, 1, 4, 2, 5})
          : patches.reshape({items, rows, columns, patch, patch, channels}).permute({0, 5, 1, 3, 2, 4});
  return image.reshape({items, channels, rows * patch, columns * patch});
}

}  // namespace chiliad::ops
