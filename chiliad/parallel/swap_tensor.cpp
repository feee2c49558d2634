#include "chiliad/parallel/swap_tensor.h"

#include <ATen/ATen.h>

#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::parallel {
namespace {

/// Points the storage at memory that somebody else owns.
void point_at(const at::Tensor& tensor, void* memory) {
  tensor.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
      at::DataPtr(memory, at::Device(at::DeviceType::CPU)));
}

}  // namespace

SwapTensor::SwapTensor(int64_t count, at::ScalarType type) : base_(at::empty({count}, type)) {
  point_at(base_, nullptr);
}

void SwapTensor::attach(BufferPool& pool) {
  attach(pool.take(base_.numel()));
}

void SwapTensor::attach(at::Tensor memory) {
  CHILIAD_CHECK(!has_memory() && memory.numel() >= base_.numel());
  CHILIAD_CHECK(memory.scalar_type() == base_.scalar_type());
  memory_ = std::move(memory);
  point_at(base_, memory_.mutable_data_ptr());
}

void SwapTensor::release(BufferPool& pool) {
  CHILIAD_CHECK(has_memory());
  point_at(base_, nullptr);
  pool.give(std::move(memory_));
  memory_.reset();
}

}  // namespace chiliad::parallel
