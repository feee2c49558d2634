#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "chiliad/base/unique_fd.h"

namespace chiliad::ipc {

/// Anonymous shared memory (memfd): no name, gone with its last holder, outlives a worker while the parent
/// holds it.
class SharedMemory {
 public:
  /// Zeroed; `label` shows in /proc only. Throws Unavailable where memory is short.
  [[nodiscard]] static SharedMemory create(const std::string& label, size_t num_bytes);
  /// Maps a descriptor received from a peer.
  [[nodiscard]] static SharedMemory map(UniqueFd fd);

  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  [[nodiscard]] std::span<std::byte> bytes() const { return {data_, size_}; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  SharedMemory() = default;
  UniqueFd fd_;
  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace chiliad::ipc
