#include "chiliad/generate/sampler.h"

#include <ATen/ATen.h>

#include "chiliad/base/error.h"
#include "chiliad/base/rng.h"

namespace chiliad::generate {

at::Tensor step_noise(const std::vector<uint64_t>& keys, int64_t i, const at::Tensor& like) {
  CHILIAD_CHECK_EQ(static_cast<int64_t>(keys.size()), like.size(0));
  at::Tensor noise = at::empty(like.sizes(), at::kFloat);
  const auto row = static_cast<size_t>(like.numel() / like.size(0));
  float* out = noise.mutable_data_ptr<float>();
  for (const uint64_t key : keys) {
    Rng({key, static_cast<uint64_t>(Draw::kSample), static_cast<uint64_t>(i)}).fill_normal({out, row});
    out += row;
  }
  return noise.to(like.options());
}

}  // namespace chiliad::generate
