#include "chiliad/parallel/buffer_pool.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "chiliad/base/planted.h"
#include "chiliad/parallel/shared_values.h"

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
    at::Tensor buffer = make(std::max(count, size_));
    num_bytes_ += static_cast<int64_t>(buffer.nbytes());
    return buffer;
  }
  at::Tensor buffer = std::move(*chosen);
  free_.erase(chosen);
  if (group_ != nullptr && !planted_bug("early_reuse")) group_->await_read(buffer);
  return buffer;
}

at::Tensor BufferPool::make(int64_t count) const {
  if (group_ == nullptr) return at::empty({count}, type_);
  return shared_values(*group_, count, type_);
}

void BufferPool::give(at::Tensor buffer) {
  free_.push_back(std::move(buffer));
}

}  // namespace chiliad::parallel
