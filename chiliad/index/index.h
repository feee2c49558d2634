#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
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

/// An opened index: the manifest and all shards' columns (samples are numbered through the shards in order).
class Index {
 public:
  [[nodiscard]] static Index open(const std::filesystem::path& folder);
  /// An index that lies in no folder; num_samples and the digest of `manifest` are set from the shards.
  [[nodiscard]] static Index from_shards(Manifest manifest, std::vector<Shard> shards) {
    Index index;
    Hasher hasher;
    hasher.add(manifest.layout);
    index.first_sample_.push_back(0);
    for (const Shard& shard : shards) {
      hasher.add(shard.content);
      index.first_sample_.push_back(index.first_sample_.back() + static_cast<int64_t>(shard.samples.size()));
    }
    index.manifest_ = std::move(manifest);
    index.manifest_.num_samples = index.first_sample_.back();
    index.manifest_.digest = hasher.digest();
    index.shards_ = std::move(shards);
    return index;
  }

  [[nodiscard]] const Manifest& manifest() const { return manifest_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] int64_t num_samples() const { return manifest_.num_samples; }
  [[nodiscard]] const std::vector<Shard>& shards() const { return shards_; }

  struct Location {
    uint32_t shard = 0;
    uint32_t sample = 0;
  };
  [[nodiscard]] Location locate(int64_t sample) const;
  [[nodiscard]] const Sample& sample(int64_t sample) const;
  [[nodiscard]] const Shard& shard_of(int64_t sample) const;
  /// The sample's image part, or null.
  [[nodiscard]] const Part* image_part(int64_t sample) const;
  [[nodiscard]] const std::string& key(int64_t sample) const;
  /// Absolute path of a part's file.
  [[nodiscard]] std::filesystem::path part_path(const Shard& shard, const Part& part) const;

 private:
  std::filesystem::path folder_;
  Manifest manifest_;
  std::vector<Shard> shards_;
  std::vector<int64_t> first_sample_;  // of each shard, and the end
};

}  // namespace chiliad::index
