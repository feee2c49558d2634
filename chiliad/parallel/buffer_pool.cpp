#include "chiliad/parallel/buffer_pool.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

namespace chiliad::parallel {

at::Tensor BufferPool::take(int64_t count) {
  const auto larger = [](const at::Tensor& a, const at::Tensor& b) { return a.numel() < b.numel(); };
  const auto largest = std::max_element(free_.begin(), free_.end(), larger);
  auto chosen = free_.end();
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const bool fits = it->numel() >= count;
    if (fits && (chosen == free_.end() || it->numel() < chosen->numel())) chosen = it;
  }
  if (chosen == free_.end()) {
    // One that is too small is replaced, so that there are as many buffers as were in use at once.
    if (largest != free_.end()) {
      num_bytes_ -= static_cast<int64_t>(largest->nbytes());
      free_.erase(largest);
    }
    num_bytes_ += 4 * count;
    return at::empty({count}, at::kFloat);
  }
  at::Tensor buffer = std::move(*chosen);
  free_.erase(chosen);
  return buffer;
}

void BufferPool::give(at::Tensor buffer) {
  free_.push_back(std::move(buffer));
}

}  // namespace chiliad::parallel
