#include "chiliad/parallel/shared_values.h"

#include <ATen/ATen.h>

namespace chiliad::parallel {

at::Tensor shared_values(comm::Group& group, int64_t count, at::ScalarType type) {
  const auto element = static_cast<int64_t>(c10::elementSize(type));
  const at::Tensor bytes = count > 0 ? group.share(count * element) : at::Tensor();
  return bytes.defined() ? bytes.view(type) : at::zeros({count}, type);
}

}  // namespace chiliad::parallel
