#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/index/columns.h"

namespace chiliad::index {

/// One line of the manifest.
struct ShardEntry {
  std::string sidecar;  ///< file name under shards/
  Digest content;
  int64_t num_samples = 0;
  int64_t payload_bytes = 0;
};

/// A data set's table of contents (manifest.json).
struct Manifest {
  int version = 1;
  std::string layout;  ///< dataset/build_index.h names them
  std::string root;    ///< absolute path of the source; files are named relative to it
  std::vector<ShardEntry> shards;
  int64_t num_samples = 0;
  int64_t num_bad = 0;  ///< samples that cannot be used, with reasons in bad.jsonl
  Digest digest;        ///< over layout and the shards' content digests: the identity of the data
};

/// Sidecar of one shard: docs/formats/sidecar.md. Written atomically, durable on return.
void write_sidecar(const std::filesystem::path& path, const Shard& shard);
/// Throws CorruptData (naming file and section) for anything but the bytes that write_sidecar wrote.
[[nodiscard]] Shard read_sidecar(const std::filesystem::path& path);

void write_manifest(const std::filesystem::path& folder, const Manifest& manifest);
[[nodiscard]] Manifest read_manifest(const std::filesystem::path& folder);

/// Derived column: token count of each caption of a shard, in caption order; a file keyed by shard content,
/// tokenizer and template digests, made on first use.
struct TokenColumn {
  std::vector<uint32_t> caption_tokens;
};
[[nodiscard]] std::filesystem::path token_column_path(const std::filesystem::path& folder,
                                                      const Digest& shard, const Digest& tokenizer);
void write_token_column(const std::filesystem::path& path, const TokenColumn& column);
[[nodiscard]] TokenColumn read_token_column(const std::filesystem::path& path, size_t num_captions);

/// A shard's columns; shared by their readers, until the last is done with them.
using ShardPtr = std::shared_ptr<const Shard>;

/// How an index is opened.
struct OpenOptions {
  /// An index of more samples reads its sidecars when they are asked for, and keeps the last ones.
  int64_t eager_samples = 1 << 20;
  size_t max_shards = 256;  ///< kept of such an index
};

/// An opened index, or several one after another: the manifest and the shards' columns (samples are numbered
/// through the shards in order). Thread-safe. Copies share the columns.
class Index {
 public:
  [[nodiscard]] static Index open(const std::filesystem::path& folder, const OpenOptions& options = {});
  /// An index that lies in no folder; num_samples and the digest of `manifest` are set from the shards.
  [[nodiscard]] static Index from_shards(Manifest manifest, std::vector<Shard> shards);
  /// One index of `parts`, of one or more: shards and samples are numbered through them. Its identity is that
  /// of the only part, or a digest over all of them.
  [[nodiscard]] static Index concatenate(std::vector<Index> parts);

  /// Of several parts: shards of all of them, root and layout of none.
  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  /// Of the first part.
  [[nodiscard]] const std::filesystem::path& folder() const { return members_.front().folder; }
  /// The folder that holds what is derived of a shard.
  [[nodiscard]] const std::filesystem::path& folder_of(uint32_t shard) const;
  [[nodiscard]] int64_t num_samples() const { return manifest_.num_samples; }
  [[nodiscard]] uint32_t num_shards() const { return static_cast<uint32_t>(manifest_.shards.size()); }
  /// Whether all columns are in memory.
  [[nodiscard]] bool is_loaded() const;

  /// One of the indexes that this one is made of.
  struct Member {
    std::filesystem::path folder;
    Digest digest;
    uint32_t first_shard = 0;
    uint32_t end_shard = 0;
    int64_t first_sample = 0;
    int64_t end_sample = 0;
    std::string root{};  ///< of the manifest
  };
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }

  /// Read when asked for, where the index is large. Throws CorruptData where a sidecar is not that of the
  /// manifest.
  [[nodiscard]] ShardPtr shard(uint32_t number) const;
  /// All of them, from then on in memory: for tools that go through small data sets.
  [[nodiscard]] const std::vector<Shard>& shards() const;

  struct Location {
    uint32_t shard = 0;
    uint32_t sample = 0;
  };
  [[nodiscard]] Location locate(int64_t sample) const;
  [[nodiscard]] Sample sample(int64_t sample) const;
  [[nodiscard]] ShardPtr shard_of(int64_t sample) const;
  /// The sample's image part, or null; holds the shard.
  [[nodiscard]] std::shared_ptr<const Part> image_part(int64_t sample) const;
  [[nodiscard]] std::string key(int64_t sample) const;
  [[nodiscard]] int64_t first_sample(uint32_t shard) const { return first_sample_[shard]; }
  /// Absolute path of a part's file.
  [[nodiscard]] std::filesystem::path part_path(const Shard& shard, const Part& part) const;

 private:
  class Columns;

  Manifest manifest_;
  std::vector<Member> members_;
  std::vector<int64_t> first_sample_;  // of each shard, and the end
  std::shared_ptr<Columns> columns_;   // shared by copies, and by the shards' readers
};

}  // namespace chiliad::index
