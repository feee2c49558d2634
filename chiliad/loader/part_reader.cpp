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

std::shared_ptr<const io::File> LocalParts::open(const std::filesystem::path& path) {
  try {
    return files_.get(path);
  } catch (const InvalidInput& error) {
    throw Unavailable(path.string(),
                      fmt::format("data changed since it was indexed: {}. Put the file back, or index "
                                  "the data again",
                                  error.what()));
  }
}

int64_t LocalParts::read(const index::Shard& shard, const index::Part& part, std::span<std::byte> out) {
  const std::filesystem::path path = index_.part_path(shard, part);
  for (int attempt = 1;; ++attempt) {
    try {
      return open(path)->read_some_at(static_cast<int64_t>(part.offset), out);
    } catch (const Unavailable&) {
      files_.forget(path);
      if (attempt >= kAttempts) throw;
      std::this_thread::sleep_for(kRetryPause);
    }
  }
}

void LocalParts::distrust(const index::Shard& shard, const index::Part& part) {
  files_.forget(index_.part_path(shard, part));
}

std::string LocalParts::change_note(const index::Shard& shard, const index::Part& part) {
  const index::SourceFile& indexed = shard.files.at(part.file);
  const io::FileStamp now = open(index_.part_path(shard, part))->stamp();
  if (now.size == indexed.size && now.mtime_ns == indexed.mtime_ns) return "";
  return fmt::format("; the file changed since it was indexed ({} bytes then, {} now)", indexed.size,
                     now.size);
}

PartReader::PartReader(const index::Index& index, std::shared_ptr<index::PartSource> source,
                       size_t max_open_files)
    : source_(std::move(source)) {
  if (source_ == nullptr) source_ = std::make_shared<LocalParts>(index, max_open_files);
}

PartBytes PartReader::read(const index::Shard& shard, const index::Part& part) {
  PartBytes result = read_once(shard, part);
  if (result.refusal.empty()) return result;
  source_->distrust(shard, part);
  return read_once(shard, part);
}

PartBytes PartReader::read_once(const index::Shard& shard, const index::Part& part) {
  PartBytes result;
  result.bytes.resize(part.length);
  const int64_t got = source_->read(shard, part, result.bytes);
  bytes_read_ += got;
  const std::string& name = shard.files.at(part.file).path;
  if (got < static_cast<int64_t>(part.length)) {
    result.refusal = fmt::format("{}: ends at byte {}, expected {} bytes from {}{}", name,
                                 static_cast<int64_t>(part.offset) + got, part.length, part.offset,
                                 source_->change_note(shard, part));
    return result;
  }
  const uint64_t checksum = hash64(std::span<const std::byte>(result.bytes));
  if (checksum != part.checksum) {
    result.refusal = fmt::format("{}: checksum: expected {:016x}, got {:016x}{}", name, part.checksum,
                                 checksum, source_->change_note(shard, part));
  }
  return result;
}

}  // namespace chiliad::loader
