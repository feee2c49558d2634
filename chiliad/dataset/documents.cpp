#include "chiliad/dataset/detail/documents.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "chiliad/base/error.h"
#include "chiliad/io/file.h"

namespace chiliad::dataset::detail {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

/// Collects lines from chunks of a file.
class LineFinder {
 public:
  explicit LineFinder(ShardDraft& draft) : draft_(draft) {}

  void add(std::string_view chunk) {
    while (!chunk.empty()) {
      const size_t end = chunk.find('\n');
      const std::string_view part = chunk.substr(0, end);
      blank_ = blank_ && part.find_first_not_of(" \t\r") == std::string_view::npos;
      length_ += part.size();
      if (end == std::string_view::npos) return;
      finish_line();
      chunk.remove_prefix(end + 1);
    }
  }

  void finish_line() {
    ++number_;
    if (!blank_) {
      SampleDraft sample;
      sample.key = fmt::format("{}:{}", draft_.files[0].path, number_);
      sample.parts.push_back({.file = 0,
                              .offset = start_,
                              .length = length_,
                              .media = index::MediaType::kJsonLine,
                              .is_caption = true});
      draft_.samples.push_back(std::move(sample));
    }
    start_ += length_ + 1;
    length_ = 0;
    blank_ = true;
  }

 private:
  ShardDraft& draft_;
  int64_t number_ = 0;
  uint64_t start_ = 0;
  uint64_t length_ = 0;
  bool blank_ = true;
};

}  // namespace

ShardDraft draft_line_shard(const std::filesystem::path& root, const index::SourceFile& file) {
  ShardDraft draft;
  draft.files.push_back(file);
  const io::File lines = io::File::open_read(root / file.path);
  LineFinder finder(draft);
  std::vector<std::byte> chunk(kChunkBytes);
  for (int64_t at = 0; at < file.size;) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(file.size - at, kChunkBytes));
    lines.read_at(at, std::span(chunk).first(wanted));
    finder.add({reinterpret_cast<const char*>(chunk.data()), wanted});
    at += static_cast<int64_t>(wanted);
  }
  finder.finish_line();
  if (lines.stamp() != io::FileStamp{file.size, file.mtime_ns}) {
    throw Unavailable(lines.path().string(),
                      "changed while it was indexed. Index again when nothing writes there");
  }
  return draft;
}

std::vector<ShardDraft> draft_text_shards(const SourceListing& listing, int64_t shard_bytes) {
  std::vector<ShardDraft> shards;
  int64_t bytes = 0;
  for (const index::SourceFile& text : listing.texts) {
    if (shards.empty() || bytes >= shard_bytes) {
      shards.emplace_back();
      bytes = 0;
    }
    ShardDraft& shard = shards.back();
    SampleDraft sample;
    sample.key = text.path.substr(0, text.path.rfind('.'));
    sample.parts.push_back({.file = static_cast<uint32_t>(shard.files.size()),
                            .offset = 0,
                            .length = static_cast<uint64_t>(text.size),
                            .media = index::MediaType::kText,
                            .is_caption = true});
    shard.files.push_back(text);
    shard.samples.push_back(std::move(sample));
    bytes += text.size;
  }
  return shards;
}

}  // namespace chiliad::dataset::detail
