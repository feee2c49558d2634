#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "chiliad/index/index.h"
#include "chiliad/io/file.h"

namespace chiliad::loader {

/// Open files, the ones not used for longest closed first. Thread-safe.
class OpenFiles {
 public:
  explicit OpenFiles(size_t max_files) : max_files_(max_files) {}

  /// Shared by the readers of the file until their last read. Errors as of io::File::open_read.
  [[nodiscard]] std::shared_ptr<const io::File> get(const std::filesystem::path& path);
  /// So that the next `get` opens it anew.
  void forget(const std::filesystem::path& path);

 private:
  struct Entry {
    std::string path;
    std::shared_ptr<const io::File> file;
  };

  const size_t max_files_;
  std::mutex mutex_;          // guards the rest
  std::list<Entry> entries_;  // used last first
  std::map<std::string, std::list<Entry>::iterator> by_path_;
};

/// Bytes whose checksum is that of the index, or why there are none.
struct PartBytes {
  std::vector<std::byte> bytes;
  std::string refusal;  ///< empty: the bytes are good
};

/// Reads parts of samples where they lie. Thread-safe.
class PartReader {
 public:
  /// `index` outlives the reader.
  explicit PartReader(const index::Index& index, size_t max_open_files = 64)
      : index_(index), files_(max_open_files) {}

  /// Reads and verifies a part; wrong bytes are read once more from a file opened anew before they are
  /// refused. Storage errors are tried again and then thrown as Unavailable; so is a missing file.
  [[nodiscard]] PartBytes read(const index::Shard& shard, const index::Part& part);
  [[nodiscard]] int64_t bytes_read() const { return bytes_read_.load(); }

 private:
  [[nodiscard]] PartBytes read_once(const index::Shard& shard, const index::Part& part);

  const index::Index& index_;
  OpenFiles files_;
  std::atomic<int64_t> bytes_read_{0};
};

}  // namespace chiliad::loader
