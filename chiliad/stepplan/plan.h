#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/index/index.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/buckets.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/stepplan/journal.h"
#include "chiliad/stepplan/offline_packs.h"
#include "chiliad/stepplan/order.h"

namespace chiliad::stepplan {

/// Kilobytes of state that name a place in the order; stored in checkpoints.
struct Cursor {
  int version = 1;
  Digest data;     ///< identity of the index
  Digest content;  ///< settings that decide content
  uint64_t seed = 0;
  int64_t next_step = 0;
  Digest journal;

  bool operator==(const Cursor&) const = default;
  [[nodiscard]] std::string to_json() const;
  /// Throws CorruptData.
  [[nodiscard]] static Cursor from_json(const std::string& text);
};

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
};

/// Token count of the caption `caption` of shard `shard`; of a document uncut, with the tokens around it.
using TokenCount = std::function<uint32_t(uint32_t shard, uint32_t caption)>;
/// Counts of the token columns of `index` that are keyed by `tokenizer`, the digest of a tokenizer or
/// document encoder. Throws as index::read_token_column.
[[nodiscard]] TokenCount column_counts(const index::Index& index, const Digest& tokenizer);

/// Which items a plan is about.
enum class PlanPart {
  kTraining,
  kHeldOut,  ///< those of data.held_out, in the order of the index
};

/// The pure function from a step number to its items. Immutable but for the journal's amendments; `select` is
/// thread-safe. Order: docs/formats/plan.md.
class Plan {
 public:
  /// `documents`: digest of the encoder that `tokens` counts for, where items are documents (mode pack),
  /// whose content it is; none: they are pictures. `packs`, kept: what a step takes, `batch` of them; none:
  /// it takes items. Throws InvalidInput if no item is left, with the coverage in the message, and for packs
  /// that were made for other data.
  Plan(const index::Index& index, const spec::DataOptions& options, uint64_t seed, TokenCount tokens,
       const Digest& documents = {}, PlanPart part = PlanPart::kTraining,
       std::shared_ptr<const OfflinePacks> packs = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) = delete;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  [[nodiscard]] Step select(int64_t step, const Journal& journal) const;

  /// A sample that the order holds.
  struct Planned {
    int64_t sample = 0;
    int32_t bucket = 0;
  };
  /// All that an epoch shows, and those that are held out, by sample.
  [[nodiscard]] std::vector<Planned> planned() const;
  /// Captions that may be drawn for a sample, by their numbers in its shard; none where captions are not
  /// wanted.
  [[nodiscard]] std::vector<uint32_t> captions_of(int64_t sample) const;
  /// Tokens of the longest of them, as an item of it may have.
  [[nodiscard]] uint32_t longest_tokens(int64_t sample) const;
  /// Samples that training shows, ascending.
  [[nodiscard]] std::vector<int64_t> samples() const;
  /// Documents have one, of no pixels.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] bool packs_documents() const { return of_documents_; }
  [[nodiscard]] const index::Index& index() const { return index_; }
  [[nodiscard]] const Order& order() const { return *order_; }
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }
  [[nodiscard]] int64_t items_per_epoch() const { return static_cast<int64_t>(usable_.size()); }
  [[nodiscard]] int64_t steps_per_epoch() const { return steps_per_epoch_; }
  [[nodiscard]] Digest content_digest() const { return content_; }
  [[nodiscard]] Cursor cursor(int64_t next_step, const Journal& journal) const;
  /// Throws InvalidInput naming each input that differs.
  void check_resumable(const Cursor& cursor) const;

 private:
  struct Usable {
    int64_t sample;
    int32_t bucket;
    uint32_t shard;
  };
  struct ClusterCache;

  void find_usable();
  void add_usable(const index::Sample& sample, uint32_t shard, int64_t number);
  [[nodiscard]] bool has_wanted_caption(const index::Shard& shard, const index::Sample& sample) const;
  [[nodiscard]] bool is_long_enough(const index::Sample& sample, uint32_t shard);
  [[nodiscard]] uint32_t item_tokens(uint32_t shard, uint32_t caption) const;
  /// Takes `count` items out of usable_, by a keyed choice; both keep the order of samples.
  [[nodiscard]] std::vector<Usable> take_keyed(int64_t count, uint64_t key);
  void choose_part(PlanPart part);
  void make_order();
  void take_packs(const Digest& documents);
  void add_items(int64_t ordered, Step& step, const Journal& journal) const;
  void group_buckets();
  [[nodiscard]] std::vector<int64_t> clustered_items(int64_t epoch, int64_t window, int64_t step) const;
  [[nodiscard]] std::vector<uint32_t> captions_of(const index::Shard& shard,
                                                  const index::Sample& sample) const;
  [[nodiscard]] Item make_item(const Usable& usable, int64_t epoch) const;

  const index::Index& index_;  // outlives the plan
  spec::DataOptions options_;
  bool of_documents_;
  uint64_t seed_;
  TokenCount tokens_;
  std::optional<BucketTable> table_;  // of pictures
  std::vector<Bucket> buckets_;
  std::vector<int64_t> shard_start_;  // first sample of each shard, and the end
  std::vector<uint32_t> languages_;
  std::vector<Usable> usable_;                 // by sample
  std::vector<Usable> other_;                  // of the other part, by sample
  std::shared_ptr<const OfflinePacks> packs_;  // shared with whoever opened it
  std::unique_ptr<Order> order_;
  std::vector<int32_t> bucket_group_;    // of each bucket, where shape_clusters > 1
  std::unique_ptr<ClusterCache> cache_;  // the window sorted last
  Coverage coverage_;
  int64_t steps_per_epoch_ = 0;
  Digest content_;
};

/// Where blocks of the index end, in samples; those outside of every block count to the one before.
[[nodiscard]] std::vector<int64_t> block_ends(const index::Index& index);

/// The shapes of a run's pictures, by its settings (buckets.h).
[[nodiscard]] std::vector<Bucket> make_buckets(const spec::DataOptions& options);
/// The bucket whose ratio is nearest by |ln|; the smaller index on ties.
[[nodiscard]] int32_t assign_bucket(const std::vector<Bucket>& buckets, int64_t width, int64_t height);

}  // namespace chiliad::stepplan
