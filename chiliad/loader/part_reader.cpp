#include "chiliad/loader/part_reader.h"

#include <fmt/core.h>

#include <chrono>
#include <thread>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"

namespace chiliad::loader {
namespace {

constexpr int kAttempts = 3;
constexpr auto kRetryPause = std::chrono::milliseconds(20);

std::string change_note(const io::File& file, const index::SourceFile& indexed) {
  const io::FileStamp now = file.stamp();
  if (now.size == indexed.size && now.mtime_ns == indexed.mtime_ns) return "";
  return fmt::format("; the file changed since it was indexed ({} bytes then, {} now)", indexed.size,
                     now.size);
}

}  // namespace

std::shared_ptr<const io::File> OpenFiles::get(const std::filesystem::path& path) {
  {
    std::lock_guard lock(mutex_);
    const auto found = by_path_.find(path.string());
    if (found != by_path_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->file;
    }
  }
  auto file = std::make_shared<const io::File>(io::File::open_read(path));  // may be slow: without the lock
  std::lock_guard lock(mutex_);
  if (by_path_.contains(path.string())) return file;
  entries_.push_front({path.string(), file});
  by_path_[path.string()] = entries_.begin();
  if (entries_.size() > max_files_) {
    by_path_.erase(entries_.back().path);
    entries_.pop_back();
  }
  return file;
}

void OpenFiles::forget(const std::filesystem::path& path) {
  std::lock_guard lock(mutex_);
  const auto found = by_path_.find(path.string());
  if (found == by_path_.end()) return;
  entries_.erase(found->second);
  by_path_.erase(found);
}

PartBytes PartReader::read(const index::Shard& shard, const index::Part& part) {
  const std::filesystem::path path = index_.part_path(shard, part);
  bool read_again = false;
  for (int attempt = 1;; ++attempt) {
    try {
      PartBytes result = read_once(shard, part);
      if (result.refusal.empty() || read_again) return result;
      read_again = true;
      files_.forget(path);
    } catch (const Unavailable&) {
      files_.forget(path);
      if (attempt >= kAttempts) throw;
      std::this_thread::sleep_for(kRetryPause);
    }
  }
}

PartBytes PartReader::read_once(const index::Shard& shard, const index::Part& part) {
  const std::filesystem::path path = index_.part_path(shard, part);
  std::shared_ptr<const io::File> file;
  try {
    file = files_.get(path);
  } catch (const InvalidInput& error) {
    throw Unavailable(path.string(),
                      fmt::format("data changed since it was indexed: {}. Put the file back, or index "
                                  "the data again",
                                  error.what()));
  }
  PartBytes result;
  result.bytes.resize(part.length);
  const int64_t got = file->read_some_at(static_cast<int64_t>(part.offset), result.bytes);
  bytes_read_ += got;
  const index::SourceFile& indexed = shard.files.at(part.file);
  if (got < static_cast<int64_t>(part.length)) {
    result.refusal = fmt::format("{}: ends at byte {}, expected {} bytes from {}{}", indexed.path,
                                 static_cast<int64_t>(part.offset) + got, part.length, part.offset,
                                 change_note(*file, indexed));
    return result;
  }
  const uint64_t checksum = hash64(std::span<const std::byte>(result.bytes));
  if (checksum != part.checksum) {
    result.refusal = fmt::format("{}: checksum: expected {:016x}, got {:016x}{}", indexed.path, part.checksum,
                                 checksum, change_note(*file, indexed));
  }
  return result;
}

}  // namespace chiliad::loader
