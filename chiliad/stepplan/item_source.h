#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chiliad/index/sample_columns.h"
#include "chiliad/spec/options/data.h"
#include "chiliad/stepplan/block_table.h"
#include "chiliad/stepplan/item.h"
#include "chiliad/stepplan/order.h"
#include "chiliad/stepplan/usable.h"

namespace chiliad::stepplan {

/// The items of the blocks used last, as the columns have them. Thread-safe.
class BlockItemsCache {
 public:
  /// Those samples of a block that are items of the plan's part.
  struct BlockItems {
    index::BlockRows rows;                      // `samples` are the items
    std::vector<uint32_t> offset;               // of each item in the block's samples
    std::vector<std::vector<int32_t>> buckets;  // of each stage, of each item
  };
  using Held = std::shared_ptr<const BlockItems>;  // by the cache and the steps that read it

  BlockItemsCache(const index::SampleColumns& columns, const Usable& usable, const BlockTable& table,
                  int64_t max_items)
      : columns_(columns), usable_(usable), table_(table), max_items_(max_items) {}

  [[nodiscard]] Held get(uint32_t block);
  /// Those of `blocks` that are not here are about to be asked for.
  void will_need(const std::vector<int64_t>& blocks);

 private:
  struct Kept {
    Held items;
    std::list<uint32_t>::iterator used;
  };
  [[nodiscard]] Held read(uint32_t block) const;

  const index::SampleColumns& columns_;
  const Usable& usable_;
  const BlockTable& table_;
  const int64_t max_items_;
  std::mutex mutex_;  // guards the rest
  int64_t num_items_ = 0;
  std::list<uint32_t> used_;  // last first
  std::unordered_map<uint32_t, Kept> kept_;
};

/// What a source is made of.
struct SourceInputs {
  std::unique_ptr<index::SampleColumns> columns;
  spec::DataOptions options;              ///< its own
  std::optional<StagedBuckets> shapes{};  ///< of pictures
  bool of_documents = false;
  TokenCount tokens;
  PictureCounts pictures{};  ///< of conversations
  uint64_t seed = 0;
  BlockTableOptions table{};
};

/// The items of one source of a plan, in the order of its own epochs. A pure function of its inputs;
/// thread-safe.
class ItemSource {
 public:
  /// There may be no items: then nothing but the table may be asked for. Throws as make_block_table.
  explicit ItemSource(SourceInputs inputs);
  ~ItemSource();
  ItemSource(const ItemSource&) = delete;
  ItemSource& operator=(const ItemSource&) = delete;

  [[nodiscard]] const BlockTable& table() const { return table_; }
  [[nodiscard]] int64_t num_items() const { return table_.num_items; }
  [[nodiscard]] const Order& order() const { return *order_; }

  /// Appends the items of a step of an epoch, which is step `of_run` of the run; returns the window.
  int64_t step_items(int64_t epoch, int64_t step, int64_t of_run, std::vector<Item>& items) const;
  /// Appends the items [first, last) of the source's epochs one after another, for step `of_run`.
  void row_items(int64_t first, int64_t last, int64_t of_run, std::vector<Item>& items) const;

  /// Appends the item that a sample is in an epoch, in the first stage; the sample is an item, and lies in
  /// `block` of the columns.
  void sample_item(int64_t epoch, int64_t block, int64_t sample, std::vector<Item>& items) const;
  /// Of all items, ascending.
  [[nodiscard]] std::vector<int64_t> samples() const;

  /// A sample that the source's plan holds, in training or held out.
  struct Planned {
    int64_t sample = 0;
    int32_t bucket = 0;
  };
  void append_planned(std::vector<Planned>& list) const;

 private:
  struct ClusterCache;

  /// Held-out items have the last one's shapes, whatever the step.
  [[nodiscard]] size_t stage_of(int64_t step_of_run) const;
  void group_buckets();
  [[nodiscard]] std::vector<ItemPlace> clustered_places(int64_t epoch, int64_t window, int64_t step,
                                                        int64_t of_run) const;
  void append_items(int64_t epoch, int64_t window, size_t stage, const std::vector<ItemPlace>& places,
                    std::vector<Item>& items) const;
  [[nodiscard]] Item make_item(const BlockItemsCache::BlockItems& block, size_t i, size_t stage,
                               int64_t epoch) const;
  void draw_caption(const BlockItemsCache::BlockItems& block, size_t i, int64_t epoch, Item& item) const;

  SourceInputs inputs_;
  Usable usable_;
  BlockTable table_;  // its items went to the order
  std::unique_ptr<Order> order_;
  std::vector<int32_t> bucket_group_;       // of each bucket of all stages, where shape_clusters > 1
  std::unique_ptr<ClusterCache> clusters_;  // the window sorted last
  std::unique_ptr<BlockItemsCache> blocks_;
};

}  // namespace chiliad::stepplan
