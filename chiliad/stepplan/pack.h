#pragma once

#include <functional>
#include <string>
#include <vector>

#include "chiliad/stepplan/item.h"

namespace chiliad::stepplan {

/// Predicted seconds of forward + backward of a micro-batch: num_items pictures of `bucket`, captions padded
/// to max_tokens. Of a fixed part and one for each item.
using WorkModel = std::function<double(Bucket bucket, int64_t num_items, int64_t max_tokens)>;
/// The same by component.
using ComponentWork = std::function<Works(Bucket bucket, int64_t num_items, int64_t max_tokens)>;

/// Predicted seconds of forward + backward of a row of documents: `num_tokens` positions, lengths whose
/// squares add up to `sum_of_squares` (attention does not cross documents).
using RowWork = std::function<double(int64_t num_tokens, double sum_of_squares)>;

/// Work of an item by component, without the overhead of its row.
using ItemWorks = std::function<Works(const Item& item)>;

/// Positions that a picture takes in a pack, with its caption where they are one sequence.
using PicturePositions = std::function<int64_t(Bucket bucket, int64_t num_tokens)>;

/// Where ranks wait for each other.
enum class Sync {
  kStep,  ///< replicated data parallelism: once a step
  kSlot,  ///< sharded parameters: at each layer, so in each slot and component
};

/// Most items of a micro-batch of a stage, whose buckets begin at `first_bucket`.
struct StageItems {
  int32_t first_bucket = 0;
  int64_t max_items = 1;
};

struct PackOptions {
  int num_ranks = 1;
  int64_t max_items = 32;  ///< of a micro-batch (the layout's memory); mode bucket
  WorkModel work{};
  int64_t max_tokens = 0;        ///< of a row (the layout's memory); 0: mode bucket
  RowWork row_work{};            ///< rows are of documents
  PicturePositions positions{};  ///< rows are of pictures; with `work`
  Sync sync = Sync::kStep;
  /// Names; each is evened out beside the sum. None or one: the sum alone.
  std::vector<std::string> components{};
  ComponentWork component_work{};  ///< of pictures; with several components, in place of `work`
  ItemWorks item_works{};          ///< of documents; in place of `row_work`
  Works row_overhead{};            ///< with item_works: what a row costs beside its items
  bool pad = false;                ///< for comparison: items as they come, padded to the largest
  bool in_order = false;           ///< for comparison: items go to ranks in turn, and stay there
  /// In place of max_items where there are several stages, in order: an item's bucket tells its step's stage.
  std::vector<StageItems> stage_items{};
  [[nodiscard]] bool packs_pictures() const { return max_tokens > 0 && positions != nullptr; }
  [[nodiscard]] int num_components() const {
    return components.empty() ? 1 : static_cast<int>(components.size());
  }
};

/// The options as they are for a step of `items`: with the max_items of their stage.
[[nodiscard]] PackOptions options_for(const PackOptions& options, const std::vector<Item>& items);

/// Cuts a step into micro-batches of one bucket each so that every rank has about equal work and the same
/// number of slots; with Sync::kSlot all ranks in each slot, too. A pure function of the step and the
/// options; items keep the plan's order inside a micro-batch. Ranks may get empty slots where there are fewer
/// items than ranks. With max_tokens > 0 a micro-batch is a row of whole items of at most max_tokens
/// positions, without padding: documents, or pictures of any shapes, which are sorted by shape there. Items
/// of an offline pack share a row. Throws InvalidInput for a picture, or a pack, that no row holds.
[[nodiscard]] PackedStep pack(const Step& step, const std::vector<Bucket>& buckets,
                              const PackOptions& options);

}  // namespace chiliad::stepplan
