#include "chiliad/stepplan/pack_padded.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "chiliad/base/error.h"

namespace chiliad::stepplan {
namespace {

bool is_of_documents(const PackOptions& options) {
  return options.row_work != nullptr || options.item_works != nullptr;
}

/// Whether one more item has room.
bool has_room(const std::vector<Item>& items, const PackOptions& options) {
  if (!is_of_documents(options)) return static_cast<int64_t>(items.size()) <= options.max_items;
  int64_t longest = 0;
  for (const Item& item : items) longest = std::max<int64_t>(longest, item.num_tokens);
  return items.size() <= 1 || longest * static_cast<int64_t>(items.size()) <= options.max_tokens;
}

Works works_of(const MicroBatch& slot, const PaddedShape& shape, const PackOptions& options) {
  const auto count = static_cast<int64_t>(slot.items.size());
  if (options.component_work) return options.component_work(shape.picture, count, shape.tokens);
  if (!is_of_documents(options)) return {options.work(shape.picture, count, shape.tokens)};
  if (options.row_work) {
    const auto tokens = static_cast<double>(shape.tokens);
    return {options.row_work(count * shape.tokens, static_cast<double>(count) * tokens * tokens)};
  }
  Works works = options.row_overhead;
  for (Item item : slot.items) {
    item.num_tokens = static_cast<uint32_t>(shape.tokens);
    const Works one = options.item_works(item);
    for (size_t c = 0; c < works.size(); ++c) works[c] += one[c];
  }
  return works;
}

}  // namespace

PaddedShape padded_shape(const std::vector<Item>& items, const std::vector<Bucket>& buckets) {
  PaddedShape shape;
  for (const Item& item : items) {
    const Bucket bucket = buckets.at(static_cast<size_t>(item.bucket));
    shape.picture.width = std::max(shape.picture.width, bucket.width);
    shape.picture.height = std::max(shape.picture.height, bucket.height);
    shape.tokens = std::max<int64_t>(shape.tokens, item.num_tokens);
  }
  return shape;
}

PackedStep pack_padded(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  const auto num_ranks = static_cast<size_t>(options.num_ranks);
  PackedStep packed;
  packed.slots.resize(num_ranks);
  packed.rank_work.resize(num_ranks);
  for (const Item& item : step.items) {
    auto& slots = packed.slots[item.position % num_ranks];
    if (slots.empty()) slots.emplace_back();
    slots.back().items.push_back(item);
    if (has_room(slots.back().items, options)) continue;
    slots.back().items.pop_back();
    slots.emplace_back().items.push_back(item);
  }
  size_t num_slots = 0;
  for (size_t rank = 0; rank < num_ranks; ++rank) {
    for (MicroBatch& slot : packed.slots[rank]) {
      slot.works = works_of(slot, padded_shape(slot.items, buckets), options);
      slot.work = std::accumulate(slot.works.begin(), slot.works.end(), 0.0);
      packed.rank_work[rank] += slot.work;
    }
    num_slots = std::max(num_slots, packed.slots[rank].size());
  }
  for (auto& slots : packed.slots) slots.resize(num_slots);
  return packed;
}

}  // namespace chiliad::stepplan
