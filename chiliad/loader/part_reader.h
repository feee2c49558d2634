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
#include "chiliad/index/part_source.h"
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

/// Parts in files under the index's root. Storage errors are tried again and then thrown as Unavailable; so
/// is a missing file.
class LocalParts final : public index::PartSource {
 public:
  /// `index` outlives it.
  explicit LocalParts(const index::Index& index, size_t max_open_files = 64)
      : index_(index), files_(max_open_files) {}

  [[nodiscard]] int64_t read(const index::Shard& shard, const index::Part& part,
                             std::span<std::byte> out) override;
  void distrust(const index::Shard& shard, const index::Part& part) override;
  [[nodiscard]] std::string change_note(const index::Shard& shard, const index::Part& part) override;

 private:
  [[nodiscard]] std::shared_ptr<const io::File> open(const std::filesystem::path& path);

  const index::Index& index_;
  OpenFiles files_;
};

/// Bytes whose checksum is that of the index, or why there are none.
struct PartBytes {
  std::vector<std::byte> bytes;
  std::string refusal;  ///< empty: the bytes are good
};

/// Reads and verifies parts of samples. Thread-safe.
class PartReader {
 public:
  /// `index` outlives the reader. `source`: shared with the other readers of the run, until the last is gone;
  /// null: files under the index's root, of which so many are kept open.
  explicit PartReader(const index::Index& index, std::shared_ptr<index::PartSource> source = nullptr,
                      size_t max_open_files = 64);

  /// Wrong bytes are read once more, from the file opened anew or from the store, before they are refused.
  /// Throws as index::PartSource.
  [[nodiscard]] PartBytes read(const index::Shard& shard, const index::Part& part);
  [[nodiscard]] int64_t bytes_read() const { return bytes_read_.load(); }

 private:
  [[nodiscard]] PartBytes read_once(const index::Shard& shard, const index::Part& part);

  // Shared as said above.
  std::shared_ptr<index::PartSource> source_;
  std::atomic<int64_t> bytes_read_{0};
};

}  // namespace chiliad::loader
