#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstddef>
#include <vector>

namespace chiliad::device {

/// Where torch's own generators of the CPU and, for work on a GPU, of that GPU stand. Layers of ours draw
/// keyed numbers (ops/keyed_noise.h) and do not move them; those of extensions may.
class RandomState {
 public:
  /// Of nothing.
  RandomState() = default;
  /// As it is now. device: of the work.
  [[nodiscard]] static RandomState now(c10::Device device);
  /// Puts the generators back to it.
  void restore() const;
  [[nodiscard]] c10::Device device() const { return device_; }

 private:
  std::vector<std::byte> cpu_;
  at::Tensor gpu_;  // a tensor of the CPU; undefined: the work was there
  c10::Device device_ = c10::kCPU;
};

/// The generators stand at `state` inside, and behind it where they stood before. Not thread-safe: torch's
/// generators are the process's.
class RandomStateGuard {
 public:
  explicit RandomStateGuard(const RandomState& state) : before_(RandomState::now(state.device())) {
    state.restore();
  }
  ~RandomStateGuard() { before_.restore(); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  RandomState before_;
};

}  // namespace chiliad::device
