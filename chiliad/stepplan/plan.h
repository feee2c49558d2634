#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiliad/base/hash.h"
#include "chiliad/index/index.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/block_table.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/stepplan/item_source.h"
#include "chiliad/stepplan/journal.h"
#include "chiliad/stepplan/mixer.h"
#include "chiliad/stepplan/offline_packs.h"
#include "chiliad/stepplan/order.h"
#include "chiliad/stepplan/staged_buckets.h"
#include "chiliad/stepplan/usable.h"

namespace chiliad::stepplan {

/// Identity of a source of a plan that mixes several.
struct SourceIdentity {
  std::string name;
  Digest data;
  bool operator==(const SourceIdentity&) const = default;
};

/// Kilobytes of state that name a place in the order; stored in checkpoints.
struct Cursor {
  int version = 1;
  Digest data;     ///< identity of the index
  Digest content;  ///< settings that decide content
  uint64_t seed = 0;
  int64_t next_step = 0;
  Digest journal;
  std::vector<SourceIdentity> sources{};  ///< where there are several

  bool operator==(const Cursor&) const = default;
  [[nodiscard]] std::string to_json() const;
  /// Throws CorruptData.
  [[nodiscard]] static Cursor from_json(const std::string& text);
};

/// Counts of the token columns of `index` that are keyed by `tokenizer`, the digest of a tokenizer or
/// document encoder. Throws as index::read_token_column.
[[nodiscard]] TokenCount column_counts(const index::Index& index, const Digest& tokenizer);

/// Files that a plan of a large index makes beside it, and reads window by window; an index that is in memory
/// has none.
struct PlanFiles {
  /// Of whoever counted the captions' tokens, which are then stored; none: they are asked for item by item.
  Digest counted{};
  bool always = false;             ///< also for an index in memory
  std::filesystem::path folder{};  ///< instead of the index's own
  /// Made beforehand: a step of training takes `batch` of them; none: it takes items.
  std::shared_ptr<const OfflinePacks> packs{};
  std::function<void(int64_t done, int64_t total)> progress{};
  /// Where documents are conversations.
  PictureCounts pictures{};
};

/// What a plan takes from a source, or from its only one.
struct SourceSummary {
  std::string name;
  Coverage coverage;
  int64_t first_sample = 0;  ///< in the index
  int64_t end_sample = 0;
};

/// The pure function from a step number to its items. Immutable but for the journal's amendments; `select` is
/// thread-safe. Memory: of a large index 5 bytes a block and two windows. Order: docs/formats/plan.md.
class Plan {
 public:
  /// `index` has a member for each leaf of options.sources. `documents`: digest of the encoder that `tokens`
  /// counts for, where items are documents (mode pack), whose content it is; none: they are pictures. Throws
  /// InvalidInput if no item is left, with the coverage in the message, and for packs that were made for
  /// other data.
  Plan(const index::Index& index, const spec::DataOptions& options, uint64_t seed, TokenCount tokens,
       const Digest& documents = {}, PlanPart part = PlanPart::kTraining, const PlanFiles& files = {});
  ~Plan();
  Plan(Plan&&) noexcept;
  Plan& operator=(Plan&&) = delete;
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  /// Throws InvalidInput for a step after the last one of sources that end.
  [[nodiscard]] Step select(int64_t step, const Journal& journal) const;

  using Planned = ItemSource::Planned;
  /// All that an epoch shows, and those that are held out, by sample. Goes through all columns.
  [[nodiscard]] std::vector<Planned> planned() const;
  /// Captions that may be drawn for a sample, by their numbers in its shard; none where captions are not
  /// wanted.
  [[nodiscard]] std::vector<uint32_t> captions_of(int64_t sample) const;
  /// Tokens of the longest of them, as an item of it may have.
  [[nodiscard]] uint32_t longest_tokens(int64_t sample) const;
  /// Samples that the plan's part shows, ascending.
  [[nodiscard]] std::vector<int64_t> samples() const;
  /// Of all stages, one after another. Documents have one, of no pixels.
  [[nodiscard]] const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Section data in each stage; one of documents.
  [[nodiscard]] std::vector<spec::DataOptions> stage_options() const;
  /// Of pictures; null: documents.
  [[nodiscard]] const StagedBuckets* stages() const { return table_ ? &*table_ : nullptr; }
  [[nodiscard]] bool packs_documents() const { return of_documents_; }
  [[nodiscard]] const index::Index& index() const { return index_; }
  /// Of the packs, or of the first source.
  [[nodiscard]] const Order& order() const {
    return pack_order_ != nullptr ? *pack_order_ : sources_.front()->order();
  }
  [[nodiscard]] int64_t num_windows() const;
  /// Of all sources.
  [[nodiscard]] const Coverage& coverage() const { return coverage_; }
  [[nodiscard]] int64_t items_per_epoch() const { return coverage_.in_order; }
  /// Of mixed sources: steps in which as many items are shown as there are.
  [[nodiscard]] int64_t steps_per_epoch() const { return steps_per_epoch_; }
  /// Steps until all sources have ended; nothing: there is always one more.
  [[nodiscard]] std::optional<int64_t> num_steps() const;
  [[nodiscard]] const std::vector<SourceSummary>& sources() const { return summaries_; }
  /// Items that each source has given before a step.
  [[nodiscard]] std::vector<int64_t> given_before(int64_t step) const;
  [[nodiscard]] Digest content_digest() const { return content_; }
  [[nodiscard]] Cursor cursor(int64_t next_step, const Journal& journal) const;
  /// Throws InvalidInput naming each input that differs.
  void check_resumable(const Cursor& cursor) const;

 private:
  [[nodiscard]] std::unique_ptr<index::SampleColumns> open_columns(size_t member, const TokenCount& tokens,
                                                                   const PlanFiles& files,
                                                                   std::filesystem::path& folder) const;
  void add_source(size_t first_member, size_t end_member, const spec::DataSource& leaf,
                  const TokenCount& tokens, const PlanFiles& files, PlanPart part);
  void check_items() const;
  void mix(PlanPart part);
  void take_packs(const Digest& documents);
  [[nodiscard]] Step select_from_row(int64_t step) const;
  [[nodiscard]] Step select_packs(int64_t step) const;

  const index::Index& index_;  // outlives the plan
  spec::DataOptions options_;
  bool of_documents_;
  uint64_t seed_;
  TokenCount tokens_;
  std::optional<StagedBuckets> table_;  // of pictures
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<ItemSource>> sources_;
  std::vector<SourceSummary> summaries_;
  std::vector<spec::DataOptions> source_options_;
  std::shared_ptr<const OfflinePacks> packs_;  // shared with whoever opened it
  std::unique_ptr<Order> pack_order_;          // of their windows
  std::vector<int64_t> first_pack_;            // of each window
  std::vector<int64_t> block_ends_;            // of the index, where there are packs
  std::unique_ptr<Mixer> mixer_;               // null: sources one after another
  std::vector<int64_t> first_step_;            // of each source in an epoch, and the end; without a mixer
  Coverage coverage_;
  int64_t steps_per_epoch_ = 0;
  Digest content_;
};

/// Where blocks of the index end, in samples; those outside of every block count to the one before.
[[nodiscard]] std::vector<int64_t> block_ends(const index::Index& index);

/// The shapes of a run's pictures in all its stages, by its settings (staged_buckets.h).
[[nodiscard]] std::vector<Bucket> make_buckets(const spec::DataOptions& options);
/// The bucket whose ratio is nearest by |ln|; the smaller index on ties.
[[nodiscard]] int32_t assign_bucket(const std::vector<Bucket>& buckets, int64_t width, int64_t height);

}  // namespace chiliad::stepplan
