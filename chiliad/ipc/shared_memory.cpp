#include "chiliad/ipc/shared_memory.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/units.h"

namespace chiliad::ipc {
namespace {

constexpr const char* kPlace = "shared memory";

[[noreturn]] void fail(const std::string& label, const char* call, int error) {
  throw Unavailable(kPlace, fmt::format("{}: {} failed: {}", label, call, std::strerror(error)));
}

std::byte* map_shared(int fd, size_t num_bytes) {
  void* memory = ::mmap(nullptr, num_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) fail("map", "mmap", errno);
  return static_cast<std::byte*>(memory);
}

/// Pages are taken now: a page that cannot be had later would be a SIGBUS in the middle of a snapshot.
void reserve(int fd, const std::string& label, size_t num_bytes) {
  const int64_t physical = static_cast<int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  if (num_bytes > static_cast<size_t>(physical)) {
    throw Unavailable(kPlace, fmt::format("{}: {} bytes do not fit into {} of memory", label, num_bytes,
                                          format_bytes(physical)));
  }
  if (::ftruncate(fd, static_cast<off_t>(num_bytes)) != 0) fail(label, "ftruncate", errno);
  int result = 0;
  do {
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(num_bytes));
  } while (result != 0 && errno == EINTR);
  if (result != 0 && errno != EOPNOTSUPP) fail(label, "fallocate", errno);
}

}  // namespace

SharedMemory SharedMemory::create(const std::string& label, size_t num_bytes) {
  CHILIAD_CHECK_GT(num_bytes, 0U);
  SharedMemory memory;
  memory.fd_ = UniqueFd(::memfd_create(label.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_.valid()) fail(label, "memfd_create", errno);
  reserve(memory.fd(), label, num_bytes);
  if (::fcntl(memory.fd(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail(label, "F_ADD_SEALS", errno);
  }
  memory.data_ = map_shared(memory.fd(), num_bytes);
  memory.size_ = num_bytes;
  return memory;
}

SharedMemory SharedMemory::map(UniqueFd fd) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) fail("map", "fstat", errno);
  if (info.st_size <= 0) throw CorruptData(kPlace, "the received descriptor is empty");
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    throw CorruptData(kPlace, "the received descriptor can shrink, expected a memfd sealed against it");
  }
  SharedMemory memory;
  memory.data_ = map_shared(fd.get(), static_cast<size_t>(info.st_size));
  memory.size_ = static_cast<size_t>(info.st_size);
  memory.fd_ = std::move(fd);
  return memory;
}

SharedMemory::~SharedMemory() {
  if (data_ != nullptr) ::munmap(data_, size_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace chiliad::ipc
