#include "chiliad/dataset/detail/record_shards.h"

#include <fmt/core.h>

#include <algorithm>

#include "chiliad/base/error.h"
#include "chiliad/base/hash.h"

namespace chiliad::dataset::detail {

namespace fs = std::filesystem;

void RecordShards::open(const fs::path& file, const fs::path& images, std::string suffix) {
  const auto stamp = io::stat_file(file);
  if (!stamp.has_value()) throw InvalidInput(file.string(), "there is no such file");
  record_file_ = {file.lexically_relative(root_).string(), stamp->size, stamp->mtime_ns};
  images_ = images;
  suffix_ = std::move(suffix);
}

std::string RecordShards::key_of(const Record& record) const {
  return fmt::format("{}:{}{}", record_file_.path, record.number, suffix_);
}

RecordShards::Picture RecordShards::find_picture(const std::string& name) const {
  const fs::path path(name);
  if (name.empty()) return {{}, "image: has no name"};
  if (path.is_absolute())
    return {{}, fmt::format("image: {}: expected a path inside the folder of pictures", name)};
  if (std::find(path.begin(), path.end(), "..") != path.end())
    return {{}, fmt::format("image: {}: climbs out of the folder of pictures", name)};
  const fs::path full = (images_ / path).lexically_normal();
  std::error_code error;
  if (!fs::is_regular_file(full, error)) return {{}, fmt::format("image: {}: is missing", name)};
  const auto stamp = io::stat_file(full);
  if (!stamp.has_value()) return {{}, fmt::format("image: {}: is missing", name)};
  return {{full.lexically_relative(root_).string(), stamp->size, stamp->mtime_ns}, ""};
}

uint32_t RecordShards::file_number(const index::SourceFile& file) {
  const auto [it, is_new] = numbers_.emplace(file.path, static_cast<uint32_t>(draft_.files.size()));
  if (is_new) draft_.files.push_back(file);
  return it->second;
}

void RecordShards::add(const Record& record, const std::vector<std::string>& images, PartDraft text) {
  constexpr size_t kMaxImages = 1024;
  if (!record.problem.empty()) return add_bad(record, record.problem);
  if (images.size() > kMaxImages)
    return add_bad(record, fmt::format("names {} pictures, expected at most {}", images.size(), kMaxImages));
  std::vector<index::SourceFile> pictures;
  for (const std::string& name : images) {
    Picture picture = find_picture(name);
    if (!picture.problem.empty()) return add_bad(record, picture.problem);
    pictures.push_back(std::move(picture.file));
  }
  SampleDraft sample;
  sample.key = key_of(record);
  for (const index::SourceFile& file : pictures) {
    sample.parts.push_back({.file = file_number(file),
                            .offset = 0,
                            .length = static_cast<uint64_t>(file.size),
                            .media = index::MediaType::kImage});
    used_.insert(hash64(file.path));
    bytes_ += file.size;
  }
  text.file = file_number(record_file_);
  text.offset += record.offset;
  bytes_ += static_cast<int64_t>(text.length);
  sample.parts.push_back(text);
  draft_.samples.push_back(std::move(sample));
  if (bytes_ >= shard_bytes_) finish();
}

void RecordShards::add_bad(const Record& record, const std::string& reason) {
  draft_.bad.push_back({key_of(record), record_file_.path, reason});
}

void RecordShards::finish() {
  if (draft_.samples.empty() && draft_.bad.empty()) return;
  if (draft_.files.empty()) static_cast<void>(file_number(record_file_));
  on_draft_(std::move(draft_));
  draft_ = {};
  numbers_.clear();
  bytes_ = 0;
}

}  // namespace chiliad::dataset::detail
