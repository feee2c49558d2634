#include "chiliad/base/host_array.h"

#include <cstring>
#include <new>
#include <utility>

namespace chiliad {

HostArray::HostArray(DType dtype, Shape shape)
    : dtype_(dtype), shape_(std::move(shape)), count_(shape_.count()) {
  const auto size = static_cast<size_t>(num_bytes());
  owned_.reset(static_cast<std::byte*>(::operator new[](size == 0 ? 1 : size, std::align_val_t{64})));
  data_ = owned_.get();
  std::memset(data_, 0, size);
}

HostArray HostArray::view(DType dtype, Shape shape, std::byte* data) {
  HostArray array;
  array.dtype_ = dtype;
  array.shape_ = std::move(shape);
  array.count_ = array.shape_.count();
  array.data_ = data;
  return array;
}

HostArray HostArray::clone() const {
  HostArray copy(dtype_, shape_);
  std::memcpy(copy.data(), data_, static_cast<size_t>(num_bytes()));
  return copy;
}

}  // namespace chiliad
