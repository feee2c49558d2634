#include "chiliad/ops/keyed_noise.h"

#include <ATen/ATen.h>

namespace chiliad::ops {

at::Tensor keyed_noise(std::span<const uint64_t> draw_keys, Draw purpose, int64_t count) {
  at::Tensor noise = at::empty({static_cast<int64_t>(draw_keys.size()), count}, at::kFloat);
  float* out = noise.mutable_data_ptr<float>();
  for (const uint64_t key : draw_keys) {
    Rng rng({key, static_cast<uint64_t>(purpose)});
    rng.fill_normal({out, static_cast<size_t>(count)});
    out += count;
  }
  return noise;
}

}  // namespace chiliad::ops
