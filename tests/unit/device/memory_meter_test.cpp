#include "chiliad/device/memory_meter.h"

#include <ATen/ATen.h>
#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <optional>
#include <thread>

namespace chiliad::device {
namespace {

TEST(MemoryMeterTest, CountsToTheByte) {
  const MemoryMeter meter;
  const at::Tensor a = at::empty({100}, at::kFloat);
  EXPECT_EQ(meter.live_bytes(), 400);
  {
    const at::Tensor b = at::empty({3}, at::kLong);
    EXPECT_EQ(meter.live_bytes(), 424);
  }
  EXPECT_EQ(meter.live_bytes(), 400);
  EXPECT_EQ(meter.peak_bytes(), 424);
}

TEST(MemoryMeterTest, PeakStartsAnewAtWhatIsThere) {
  MemoryMeter meter;
  const at::Tensor kept = at::empty({10}, at::kFloat);
  static_cast<void>(at::empty({1000}, at::kFloat));
  meter.reset_peak();
  EXPECT_EQ(meter.peak_bytes(), 40);
}

TEST(MemoryMeterTest, SeesWhatAnotherThreadFrees) {
  const MemoryMeter meter;
  std::optional<at::Tensor> tensor = at::empty({100}, at::kFloat);
  std::thread([&] { tensor.reset(); }).join();
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(MemoryMeterTest, LeavesOtherThreadsAlone) {
  const MemoryMeter meter;
  at::Tensor tensor;
  std::thread([&] { tensor = at::empty({100}, at::kFloat); }).join();
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(MemoryMeterTest, TensorsMayOutliveIt) {
  std::optional<MemoryMeter> meter(std::in_place);
  at::Tensor tensor = at::ones({100}, at::kFloat);
  meter.reset();
  EXPECT_EQ(tensor.sum().item<float>(), 100.0F);
  tensor.reset();
}

TEST(MemoryMeterTest, ServesRawMemory) {
  const MemoryMeter meter;
  c10::Allocator* allocator = c10::GetCPUAllocator();
  void* memory = allocator->raw_allocate(100);
  EXPECT_EQ(meter.live_bytes(), 100);
  allocator->raw_deallocate(memory);
  EXPECT_EQ(meter.live_bytes(), 0);
}

TEST(MemoryMeterTest, RawMemoryMayOutliveIt) {
  std::optional<MemoryMeter> meter(std::in_place);
  void* counted = c10::GetCPUAllocator()->raw_allocate(100);
  meter.reset();
  void* plain = c10::GetCPUAllocator()->raw_allocate(100);
  c10::GetCPUAllocator()->raw_deallocate(counted);
  c10::GetCPUAllocator()->raw_deallocate(plain);
}

TEST(MemoryMeterTest, KeepsTheAlignmentOfTensors) {
  const MemoryMeter meter;
  const at::Tensor tensor = at::empty({1}, at::kByte);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(tensor.const_data_ptr()) % 64, 0U);
}

}  // namespace
}  // namespace chiliad::device
