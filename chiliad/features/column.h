#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chiliad/features/identity.h"
#include "chiliad/features/part.h"
#include "chiliad/index/index.h"

namespace chiliad::features {

/// Where a column of an index of one source lies.
[[nodiscard]] std::filesystem::path column_folder(const index::Index& index, const Identity& identity);

/// A part's file: the k-th of a shard, which it names by its content, so that another order of shards finds
/// it.
[[nodiscard]] std::filesystem::path part_path(const std::filesystem::path& column, const Digest& shard,
                                              int64_t part);
/// The feature of the empty text (dropped captions, unconditional guidance).
[[nodiscard]] std::filesystem::path empty_text_path(const std::filesystem::path& column);

/// What is said about a whole column: column.json, written when all parts are there.
struct ColumnSummary {
  int64_t num_features = 0;
  int64_t num_refused = 0;
  int64_t num_bytes = 0;
  DType dtype = DType::kF32;
  int64_t channels = 0;         ///< of latents, or values of a token
  int64_t pooled_channels = 0;  ///< of the text's second feature; 0: it has none
  int64_t latent_pixels = 0;    ///< pixels a side of a latent
  bool distributions = false;   ///< latents: [2, C, h, w], mean and logvar, in place of [C, h, w]
  // Of the means of latents, as the encoder gives them.
  double mean = 0.0;
  double deviation = 0.0;
  double scaling_factor = 1.0;  ///< of the autoencoder's config.json
  double shift_factor = 0.0;
};

/// What one feature takes.
struct FeatureShape {
  DType dtype = DType::kF32;
  Shape shape;
  [[nodiscard]] int64_t num_bytes() const { return shape.count() * dtype_bytes(dtype); }
};

/// Number of parts by shard (its content).
using PartCounts = std::vector<std::pair<Digest, int64_t>>;

/// Makes a column whole: it can be opened from now on. All parts are there.
void finish_column(const std::filesystem::path& column, const Identity& identity, const PartCounts& parts,
                   const ColumnSummary& summary);

/// Whether that was written already.
[[nodiscard]] bool is_finished(const std::filesystem::path& column, const Identity& identity,
                               const PartCounts& parts, const ColumnSummary& summary);

/// Whether the column in that folder is whole: it has its column.json.
[[nodiscard]] bool is_whole(const std::filesystem::path& column);

/// What column.json says.
struct ColumnFile {
  Kind kind = Kind::kLatents;
  Digest key;
  PartCounts parts;
  ColumnSummary summary;
};
/// Of a whole column. Throws CorruptData where it is not what finish_column wrote.
[[nodiscard]] ColumnFile read_column_file(const std::filesystem::path& column);

/// A whole column of an index, its table in memory; of several sources, theirs one after another.
/// Thread-safe.
class Column {
 public:
  /// identities: of the column of each member of the index, in its folder. Throws InvalidInput saying what to
  /// run where there is none, or another one (naming the facts that differ); CorruptData for parts that are
  /// missing or damaged, and for columns that do not go together.
  [[nodiscard]] static Column open(const index::Index& index, const std::vector<Identity>& identities);

  /// Null where there is none.
  [[nodiscard]] const FeatureEntry* find(uint32_t shard, FeatureId id) const;
  /// Fills `out`, which is as long as the feature. Returns why it cannot be used (the encoder refused it, or
  /// its bytes are not those that were written), or nothing. Throws InternalError for a feature that the
  /// column does not know, or another length; Unavailable.
  [[nodiscard]] std::string read(uint32_t shard, FeatureId id, std::span<std::byte> out) const;

  /// Latents of a picture of that size in pixels; kLatents.
  [[nodiscard]] FeatureShape latents_of(int64_t width, int64_t height) const;
  /// Of so many tokens; kText.
  [[nodiscard]] FeatureShape text_of(int64_t num_tokens) const;
  /// The pooled vector, where there is one; kText.
  [[nodiscard]] std::optional<FeatureShape> pooled() const;
  /// Of a caption; 1 where the column refused it.
  [[nodiscard]] uint32_t token_count(uint32_t shard, uint32_t caption) const;
  /// Throws InvalidInput naming the run file's key where the model takes other features.
  void check_model(const spec::ModelOptions& model) const;

  /// The feature of the empty text, its second one is the pooled vector; kText alone.
  [[nodiscard]] const std::vector<Feature>& empty_text() const { return empty_text_; }
  /// Over all sources.
  [[nodiscard]] const ColumnSummary& summary() const { return summary_; }

 private:
  struct Place {
    FeatureEntry entry;
    int64_t part = 0;
  };
  struct Shard {
    std::filesystem::path folder;  // of its parts' column
    Digest content;
    std::vector<Place> places;  // by id
    std::map<uint32_t, std::string> refused;
  };
  Column() = default;
  void add_member(const index::Index& index, const index::Index::Member& member, const Identity& identity);
  void add_shard(const std::filesystem::path& folder, const Digest& key, const Digest& content,
                 int64_t num_parts);
  void add_summary(const ColumnSummary& own, const std::filesystem::path& folder);
  void read_empty_text(const std::filesystem::path& folder, const Digest& key);
  [[nodiscard]] const Place* place(uint32_t shard, FeatureId id) const;

  Kind kind_ = Kind::kLatents;
  ColumnSummary summary_;
  std::vector<Shard> shards_;
  std::vector<Feature> empty_text_;
};

}  // namespace chiliad::features
