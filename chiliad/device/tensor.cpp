#include "chiliad/device/tensor.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cstring>

#include "chiliad/base/error.h"

namespace chiliad::device {

at::ScalarType to_scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return at::kDouble;
    case DType::kF32:
      return at::kFloat;
    case DType::kF16:
      return at::kHalf;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kI64:
      return at::kLong;
    case DType::kI32:
      return at::kInt;
    case DType::kI16:
      return at::kShort;
    case DType::kI8:
      return at::kChar;
    case DType::kU8:
      return at::kByte;
    case DType::kBool:
      return at::kBool;
    default:
      break;
  }
  throw InternalError("device", fmt::format("no tensor type for {}", dtype_name(dtype)));
}

namespace {

DType from_scalar_type(at::ScalarType type) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                            DType::kI16, DType::kI8, DType::kU8, DType::kBool}) {
    if (to_scalar_type(dtype) == type) return dtype;
  }
  throw InternalError("device", "tensor type without a host type");
}

}  // namespace

at::ScalarType compute_type(const std::string& name) {
  if (name == "fp32") return at::kFloat;
  if (name == "bf16") return at::kBFloat16;
  throw InternalError("precision.compute", fmt::format("expected fp32 or bf16, got '{}'", name));
}

at::Tensor as_tensor(const HostArray& array) {
  auto* data = const_cast<std::byte*>(array.data());
  return at::from_blob(data, array.shape().sizes(), at::TensorOptions().dtype(to_scalar_type(array.dtype())));
}

HostArray to_host(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.detach().to(at::kCPU).contiguous();
  HostArray array(from_scalar_type(dense.scalar_type()), Shape(dense.sizes().vec()));
  std::memcpy(array.data(), dense.const_data_ptr(), static_cast<size_t>(array.num_bytes()));
  return array;
}

void set_compute_threads(int threads) {
  at::set_num_threads(threads);
}

}  // namespace chiliad::device
