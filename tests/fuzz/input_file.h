#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "chiliad/base/error.h"

namespace chiliad::fuzz {

/// Bytes as a file that lies in memory, for readers that open a path.
class InputFile {
 public:
  InputFile(const uint8_t* data, size_t size) : fd_(memfd_create("input", 0)) {
    CHILIAD_CHECK_GE(fd_, 0);
    CHILIAD_CHECK_EQ(write(fd_, data, size), static_cast<ssize_t>(size));
  }
  ~InputFile() { close(fd_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Relative to the root of the file system.
  [[nodiscard]] std::string name() const { return "proc/self/fd/" + std::to_string(fd_); }
  [[nodiscard]] std::filesystem::path path() const { return "/" + name(); }

 private:
  int fd_;
};

/// Runs `work`; input that is refused as the user's mistake or as damage is as good as one that is taken. All
/// else ends the program.
template <typename Work>
void accept_refusals(Work&& work) {
  try {
    work();
  } catch (const InvalidInput&) {
  } catch (const CorruptData&) {
  }
}

}  // namespace chiliad::fuzz
