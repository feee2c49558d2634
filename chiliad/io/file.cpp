#include "chiliad/io/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/io/faults.h"

namespace chiliad::io {
namespace {

[[noreturn]] void fail(const fs::path& path, const char* what, int error) {
  throw Unavailable(path.string(), fmt::format("{} failed: {}", what, std::strerror(error)));
}

/// Runs the fault hook; throws what it asks for. Returns whether a write shall be cut short.
bool pass_hook(FileOp op, const fs::path& path) {
  const FaultAction action = before_file_op(op, path.string());
  if (action.short_write) return true;
  if (action.error != 0) fail(path, file_op_name(op), action.error);
  return false;
}

int open_or_fail(const fs::path& path, int flags, mode_t mode) {
  pass_hook(FileOp::kOpen, path);
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  if (fd >= 0) return fd;
  const int error = errno;
  const bool reading = (flags & O_ACCMODE) == O_RDONLY;
  if (reading && (error == ENOENT || error == ENOTDIR || error == EACCES || error == EISDIR)) {
    throw InvalidInput(path.string(), fmt::format("cannot open for reading: {}", std::strerror(error)));
  }
  fail(path, "open", error);
}

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

}  // namespace

File File::open_read(const fs::path& path) {
  return {path, UniqueFd(open_or_fail(path, O_RDONLY, 0))};
}

File File::create(const fs::path& path) {
  return {path, UniqueFd(open_or_fail(path, O_WRONLY | O_CREAT | O_TRUNC, 0666))};
}

File File::open_append(const fs::path& path) {
  return {path, UniqueFd(open_or_fail(path, O_WRONLY | O_CREAT | O_APPEND, 0666))};
}

FileStamp File::stamp() const {
  struct stat info {};
  if (::fstat(fd_.get(), &info) != 0) fail(path_, "stat", errno);
  if (S_ISDIR(info.st_mode)) throw InvalidInput(path_.string(), "is a folder, expected a file");
  return {info.st_size, static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

int64_t File::size() const {
  return stamp().size;
}

int64_t File::read_some_at(int64_t offset, std::span<std::byte> out) const {
  pass_hook(FileOp::kRead, path_);
  int64_t done = 0;
  while (done < static_cast<int64_t>(out.size())) {
    const ssize_t got =
        ::pread(fd_.get(), out.data() + done, out.size() - static_cast<size_t>(done), offset + done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, "read", errno);
    if (got == 0) break;
    done += got;
  }
  return done;
}

void File::read_at(int64_t offset, std::span<std::byte> out) const {
  const int64_t got = read_some_at(offset, out);
  if (got == static_cast<int64_t>(out.size())) return;
  throw CorruptData(path_.string(), fmt::format("ends at byte {}, expected {} bytes from {}", offset + got,
                                                out.size(), offset));
}

void File::write(std::span<const std::byte> bytes) {
  if (pass_hook(FileOp::kWrite, path_)) {
    [[maybe_unused]] const ssize_t half = ::write(fd_.get(), bytes.data(), bytes.size() / 2);
    fail(path_, "write", ENOSPC);
  }
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t put = ::write(fd_.get(), bytes.data() + done, bytes.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail(path_, "write", errno);
    done += static_cast<size_t>(put);
  }
}

void File::sync() {
  if (planted_bug("dropped_fsync")) return;
  pass_hook(FileOp::kSync, path_);
  if (::fsync(fd_.get()) != 0) fail(path_, "fsync", errno);
}

void File::close() {
  pass_hook(FileOp::kClose, path_);
  if (::close(fd_.release()) != 0 && errno != EINTR) fail(path_, "close", errno);
}

std::vector<std::byte> read_file(const fs::path& path, int64_t max_bytes) {
  std::error_code unknown;
  if (fs::is_fifo(path, unknown))  // to open it would wait for its writer, for ever
    throw InvalidInput(path.string(), "is a pipe, expected a file");
  const File file = File::open_read(path);
  const int64_t size = file.size();
  if (size > max_bytes) {
    throw InvalidInput(path.string(), fmt::format("has {} bytes, expected at most {}", size, max_bytes));
  }
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  file.read_at(0, bytes);
  return bytes;
}

std::string read_text(const fs::path& path, int64_t max_bytes) {
  const auto bytes = read_file(path, max_bytes);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<FileStamp> stat_file(const fs::path& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return std::nullopt;
    fail(path, "stat", errno);
  }
  return FileStamp{info.st_size,
                   static_cast<int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec};
}

void write_atomic(const fs::path& path, std::span<const std::byte> bytes) {
  std::error_code unknown;
  const auto status = fs::status(path, unknown);
  if (fs::exists(status) && !fs::is_regular_file(status))
    throw InvalidInput(path.string(), "expected the name of a file, got a folder or a device. Name another");
  fs::path temporary = path;
  temporary += ".tmp";
  File file = File::create(temporary);
  file.write(bytes);
  file.sync();
  file.close();
  rename_path(temporary, path);
  sync_folder(parent_of(path));
}

void write_atomic(const fs::path& path, std::string_view text) {
  write_atomic(path, std::as_bytes(std::span(text.data(), text.size())));
}

void rename_path(const fs::path& from, const fs::path& to) {
  pass_hook(FileOp::kRename, to);
  if (::rename(from.c_str(), to.c_str()) != 0) fail(to, "rename", errno);
}

void remove_file(const fs::path& path) {
  pass_hook(FileOp::kRemove, path);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail(path, "remove", errno);
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  std::vector<fs::path> folders;
  if (!fs::exists(path, error)) return;
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_directory() && !entry.is_symlink()) {
      folders.push_back(entry.path());
    } else {
      remove_file(entry.path());
    }
  }
  folders.insert(folders.begin(), path);
  for (auto it = folders.rbegin(); it != folders.rend(); ++it) {
    pass_hook(FileOp::kRemove, *it);
    if (::rmdir(it->c_str()) != 0 && errno != ENOENT) fail(*it, "remove folder", errno);
  }
}

void make_folders(const fs::path& path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error)) return;
  make_folders(parent_of(path));
  pass_hook(FileOp::kMakeFolder, path);
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail(path, "make folder", errno);
  sync_folder(parent_of(path));
}

void sync_folder(const fs::path& path) {
  if (planted_bug("dropped_fsync")) return;
  pass_hook(FileOp::kSyncFolder, path);
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) fail(path, "open folder", errno);
  if (::fsync(fd.get()) != 0) fail(path, "fsync of folder", errno);
}

std::optional<FileLock> FileLock::try_lock(const fs::path& path, std::string_view owner_text) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.valid()) fail(path, "open lock", errno);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return std::nullopt;
    fail(path, "lock", errno);
  }
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), owner_text.data(), owner_text.size(), 0) !=
                                           static_cast<ssize_t>(owner_text.size())) {
    fail(path, "write lock", errno);
  }
  return FileLock(std::move(fd));
}

bool FileLock::is_held(const fs::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) {
    if (errno == ENOENT) return false;
    fail(path, "open lock", errno);
  }
  return ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

MappedFile::MappedFile(const fs::path& path) {
  const File file = File::open_read(path);
  size_ = static_cast<size_t>(file.size());
  if (size_ == 0) return;
  void* memory = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (memory == MAP_FAILED) fail(path, "mmap", errno);
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace chiliad::io
