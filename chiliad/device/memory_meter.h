#pragma once

#include <cstdint>
#include <memory>

namespace chiliad::device {

/// Counts the bytes of the tensors that one thread allocates on the host, to the byte and whoever frees them.
/// Allocators' rounding and memory that libraries take for themselves are not in it.
class MemoryMeter {
 public:
  /// Counts from now on what this thread allocates, instead of the meter that was here before.
  MemoryMeter();
  ~MemoryMeter();
  MemoryMeter(const MemoryMeter&) = delete;
  MemoryMeter& operator=(const MemoryMeter&) = delete;

  [[nodiscard]] int64_t live_bytes() const;
  /// Most since the last reset.
  [[nodiscard]] int64_t peak_bytes() const;
  void reset_peak();

  struct Count;

 private:
  std::shared_ptr<Count> count_;  // with every allocation that it counts, which may outlive the meter
  std::shared_ptr<Count> before_;
};

}  // namespace chiliad::device
