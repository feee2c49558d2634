#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "chiliad/dataset/detail/draft.h"
#include "chiliad/dataset/detail/loose_files.h"
#include "chiliad/dataset/detail/records.h"

namespace chiliad::dataset::detail {

using OnDraft = std::function<void(ShardDraft)>;

/// Cuts a stream of samples that name pictures into shards, each passed on when it is full.
class RecordShards {
 public:
  /// `root`: what paths of files are relative to. Shards end at about `shard_bytes` of payload.
  RecordShards(std::filesystem::path root, int64_t shard_bytes, OnDraft on_draft)
      : root_(std::move(root)), shard_bytes_(shard_bytes), on_draft_(std::move(on_draft)) {}

  /// Records of `file` follow; pictures are looked for in `images`. `suffix`: of the keys of its samples.
  /// Throws InvalidInput if there is no file.
  void open(const std::filesystem::path& file, const std::filesystem::path& images, std::string suffix = {});
  /// The sample of `record`: its pictures, then its text. It is bad where the record has a problem or a
  /// picture is not to be found.
  void add(const Record& record, const std::vector<std::string>& images, PartDraft text);
  void add_bad(const Record& record, const std::string& reason);
  /// Passes on the last shard.
  void finish();

  /// Whether a sample has the picture; `path` is relative to the root.
  [[nodiscard]] bool has_used(const std::string& path) const { return used_.contains(hash64(path)); }

 private:
  /// A picture to be taken, or why not.
  struct Picture {
    index::SourceFile file;
    std::string problem;
  };
  [[nodiscard]] std::string key_of(const Record& record) const;
  [[nodiscard]] Picture find_picture(const std::string& name) const;
  [[nodiscard]] uint32_t file_number(const index::SourceFile& file);

  std::filesystem::path root_;
  int64_t shard_bytes_;
  OnDraft on_draft_;
  std::filesystem::path images_;
  index::SourceFile record_file_;
  std::string suffix_;
  ShardDraft draft_;
  std::unordered_map<std::string, uint32_t> numbers_;  // of the draft's files, by path
  std::unordered_set<uint64_t> used_;                  // hashes of pictures' paths
  int64_t bytes_ = 0;                                  // of the draft
};

/// Which fields of records to read; empty: the usual names.
struct FieldNames {
  std::string image;
  std::string caption;
};
/// The names to look for, the first that is there counts.
[[nodiscard]] std::vector<std::string> image_names(const FieldNames& names);
[[nodiscard]] std::vector<std::string> caption_names(const FieldNames& names);

/// Rows that name a picture and hold its caption: metadata.jsonl or metadata.csv beside pictures, or one file
/// of that kind. Adds pictures of the listing that no row names to `unnamed`.
void draft_table(const SourceListing& listing, const FieldNames& names, int64_t shard_bytes,
                 const OnDraft& on_draft, std::vector<BadSample>& unnamed);

/// Conversations about pictures: lists of records (*.json) or a record a line (*.jsonl), those that a mixture
/// takes. A file that a mixture names again gives samples KEY#2, and so on.
void draft_conversations(const SourceListing& listing, int64_t shard_bytes, const OnDraft& on_draft);

/// What the first record of a file looks like: conversations, table, jsonl, mixture, or empty where it is
/// none.
[[nodiscard]] std::string guess_records(const std::filesystem::path& path, const FieldNames& names);

}  // namespace chiliad::dataset::detail
