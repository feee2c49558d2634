#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "chiliad/base/unique_fd.h"

namespace chiliad::io {

namespace fs = std::filesystem;

/// Size and modification time as the index records them.
struct FileStamp {
  int64_t size = 0;
  int64_t mtime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

/// An open file. Every system call passes the fault hooks (faults.h). Errors are Unavailable with path and
/// errno text
/// ("No space left on device"), a missing file in open_read is InvalidInput. Reads are thread-safe (pread).
class File {
 public:
  [[nodiscard]] static File open_read(const fs::path& path);
  /// Creates or truncates.
  [[nodiscard]] static File create(const fs::path& path);
  /// Creates where missing, and appends.
  [[nodiscard]] static File open_append(const fs::path& path);

  [[nodiscard]] int64_t size() const;
  [[nodiscard]] FileStamp stamp() const;
  /// Fills `out` from `offset`. Throws CorruptData if the file ends before.
  void read_at(int64_t offset, std::span<std::byte> out) const;
  /// Reads up to out.size() bytes; returns how many there were.
  [[nodiscard]] int64_t read_some_at(int64_t offset, std::span<std::byte> out) const;
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void sync();
  /// Closes and reports what close() says.
  void close();
  [[nodiscard]] const fs::path& path() const { return path_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  File(fs::path path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  fs::path path_;
  UniqueFd fd_;
};

/// The whole file; throws InvalidInput if it is larger than `max_bytes`.
[[nodiscard]] std::vector<std::byte> read_file(const fs::path& path, int64_t max_bytes);
[[nodiscard]] std::string read_text(const fs::path& path, int64_t max_bytes);
/// Nothing if the file does not exist.
[[nodiscard]] std::optional<FileStamp> stat_file(const fs::path& path);

/// Replaces `path` so that a crash at any moment leaves the old or the new content, durably:
/// 1. write path.tmp  2. fsync it  3. rename over path  4. fsync the folder.
void write_atomic(const fs::path& path, std::span<const std::byte> bytes);
void write_atomic(const fs::path& path, std::string_view text);

void rename_path(const fs::path& from, const fs::path& to);
void remove_file(const fs::path& path);
/// Deletes a folder and what is in it; missing is fine.
void remove_tree(const fs::path& path);
/// Makes a folder and its parents; existing is fine. Durable: each new folder's parent is fsynced.
void make_folders(const fs::path& path);
/// Makes the entries of a folder durable.
void sync_folder(const fs::path& path);

/// Holds an exclusive advisory lock on a file for its lifetime.
class FileLock {
 public:
  /// Nothing if another process holds it. The file's text is `owner_text` while held, so that others can say
  /// who.
  [[nodiscard]] static std::optional<FileLock> try_lock(const fs::path& path, std::string_view owner_text);
  /// Whether somebody holds it; false where there is no such file.
  [[nodiscard]] static bool is_held(const fs::path& path);

 private:
  explicit FileLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

/// A read-only mapping of a whole file. Only for files that we wrote ourselves (a truncated foreign file
/// faults).
class MappedFile {
 public:
  explicit MappedFile(const fs::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace chiliad::io
