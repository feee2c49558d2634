#include "chiliad/device/random_state.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <cstring>
#include <mutex>

namespace chiliad::device {
namespace {

at::Tensor state_of(c10::Device device) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  return generator.get_state();
}

void set_state(c10::Device device, const at::Tensor& state) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  const std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

RandomState RandomState::now(c10::Device device) {
  RandomState state;
  state.device_ = device;
  const at::Tensor cpu = state_of(c10::kCPU);
  const auto* bytes = static_cast<const std::byte*>(cpu.const_data_ptr());
  state.cpu_.assign(bytes, bytes + cpu.nbytes());
  if (!device.is_cpu()) state.gpu_ = state_of(device);
  return state;
}

void RandomState::restore() const {
  if (cpu_.empty()) return;
  const at::Tensor cpu = at::empty({static_cast<int64_t>(cpu_.size())}, at::kByte);
  std::memcpy(cpu.mutable_data_ptr(), cpu_.data(), cpu_.size());
  set_state(c10::kCPU, cpu);
  if (gpu_.defined()) set_state(device_, gpu_);
}

}  // namespace chiliad::device
