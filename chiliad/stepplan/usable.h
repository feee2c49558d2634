#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/index/sample_columns.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/stepplan/staged_buckets.h"

namespace chiliad::stepplan {

/// How many items were left out of the order and why; none silently.
struct Coverage {
  int64_t in_index = 0;
  int64_t in_order = 0;
  int64_t bad_image = 0;
  int64_t no_caption = 0;  ///< no caption in any of the wanted languages
  int64_t aspect = 0;      ///< beyond max_aspect_error, or what the table of buckets takes
  int64_t too_small = 0;   ///< pictures that would have to be made larger than the buckets' recipe allows
  int64_t over_limit = 0;  ///< beyond data.limit
  int64_t held_out = 0;    ///< kept for evaluation
  int64_t too_short = 0;   ///< mode pack: documents of fewer than two tokens, which have no target
  int64_t cut = 0;         ///< mode pack: documents in the index that data.sequence_length cuts
  int64_t cut_tokens = 0;  ///< what they lose

  bool operator==(const Coverage&) const = default;
  Coverage& operator+=(const Coverage& other);
};

/// Token count of the caption `caption` of shard `shard`; of a document uncut, with the tokens around it.
using TokenCount = std::function<uint32_t(uint32_t shard, uint32_t caption)>;

/// The same of pictures of conversations. None: items have no pictures of their own.
struct PictureCounts {
  TokenCount positions{};  ///< of the caption's pictures in its sequence
  TokenCount tiles{};      ///< that the vision encoder sees
};

/// Which shape a picture takes, beside the sizes; added only where used, so that runs from before resume.
void add_buckets(const spec::DataOptions& options, Hasher& hasher);

/// Which samples are items, by the settings alone (data.limit and data.held_out come after): those that every
/// stage takes, so that the order is the same in all of them. Thread-safe.
class Usable {
 public:
  /// table: of pictures; documents, and who asks for captions alone, have none.
  Usable(const spec::DataOptions& options, std::optional<StagedBuckets> table, bool of_documents,
         TokenCount tokens);

  /// The bucket of sample `i` of `rows` in the first stage (0: of a document), or nothing, which is then
  /// counted.
  [[nodiscard]] std::optional<int32_t> bucket_of(const index::BlockRows& rows, size_t i,
                                                 Coverage& coverage) const;
  /// Of a sample that is an item, in any stage.
  [[nodiscard]] int32_t bucket_in(size_t stage, const index::BlockRows::Sample& sample) const;
  [[nodiscard]] size_t num_stages() const { return table_ ? table_->num_stages() : 1; }
  /// Whether a caption may be drawn.
  [[nodiscard]] bool wanted(uint32_t language) const;
  [[nodiscard]] uint32_t tokens(const index::BlockRows& rows, const index::BlockRows::Sample& sample,
                                uint32_t c) const;
  [[nodiscard]] bool of_documents() const { return of_documents_; }
  [[nodiscard]] bool draws_captions() const { return of_documents_ || !languages_.empty(); }
  /// Over the settings that decide.
  [[nodiscard]] Digest digest() const;

 private:
  [[nodiscard]] std::optional<int32_t> bucket_of_picture(size_t stage, uint32_t width, uint32_t height,
                                                         Coverage& coverage) const;
  [[nodiscard]] bool is_long_enough(const index::BlockRows& rows, const index::BlockRows::Sample& sample,
                                    Coverage& coverage) const;

  std::optional<StagedBuckets> table_;
  Digest recipe_;  // what else decides on a bucket
  bool of_documents_;
  double max_aspect_error_;
  int64_t sequence_length_;
  std::vector<uint32_t> languages_;
  TokenCount tokens_;
};

}  // namespace chiliad::stepplan
