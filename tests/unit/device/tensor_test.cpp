#include "chiliad/device/tensor.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

namespace chiliad::device {
namespace {

TEST(TensorTest, SharesTheArraysMemory) {
  HostArray array(DType::kF32, Shape{2, 3});
  as_tensor(array).fill_(2.5);
  EXPECT_EQ(array.as<float>()[5], 2.5F);
}

TEST(TensorTest, ToHostMakesStridedTensorsDense) {
  const at::Tensor tensor = at::arange(6, at::kLong).view({2, 3}).transpose(0, 1);
  const HostArray array = to_host(tensor);
  EXPECT_EQ(array.shape(), (Shape{3, 2}));
  EXPECT_EQ(array.as<int64_t>()[1], 3);
}

TEST(TensorTest, TypesComeBack) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                            DType::kI16, DType::kI8, DType::kU8, DType::kBool}) {
    EXPECT_EQ(to_host(as_tensor(HostArray(dtype, Shape{2}))).dtype(), dtype) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace chiliad::device
