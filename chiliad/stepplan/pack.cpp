#include "chiliad/stepplan/pack.h"

#include <utility>

#include "chiliad/base/error.h"
#include "chiliad/base/planted.h"
#include "chiliad/stepplan/pack_buckets.h"
#include "chiliad/stepplan/pack_padded.h"
#include "chiliad/stepplan/pack_rows.h"

namespace chiliad::stepplan {
namespace {

void swap_samples(PackedStep& packed) {
  for (auto& slots : packed.slots) {
    for (MicroBatch& slot : slots) {
      if (slot.items.size() > 1) std::swap(slot.items[0].sample, slot.items[1].sample);
    }
  }
}

/// The second rank does what the first does, and what it should do is done by nobody.
void swap_ranks(PackedStep& packed) {
  if (packed.slots.size() > 1) packed.slots[1] = packed.slots[0];
}

PackedStep cut(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  if (options.pad) return pack_padded(step, buckets, options);
  return options.max_tokens > 0 ? pack_rows(step, buckets, options) : pack_buckets(step, buckets, options);
}

}  // namespace

PackOptions options_for(const PackOptions& options, const std::vector<Item>& items) {
  PackOptions own = options;
  own.stage_items.clear();
  for (const StageItems& stage : options.stage_items) {
    if (!items.empty() && items.front().bucket >= stage.first_bucket) own.max_items = stage.max_items;
  }
  return own;
}

PackedStep pack(const Step& step, const std::vector<Bucket>& buckets, const PackOptions& options) {
  CHILIAD_CHECK_GT(options.num_ranks, 0);
  CHILIAD_CHECK(options.num_components() <= kMaxComponents, "{} components", options.num_components());
  PackedStep packed = options.stage_items.empty() ? cut(step, buckets, options)
                                                  : cut(step, buckets, options_for(options, step.items));
  if (planted_bug("permuted_items")) swap_samples(packed);
  if (planted_bug("swapped_ranks")) swap_ranks(packed);
  for (const Item& item : step.items) {
    if (item.weight <= 0.0F) continue;
    ++packed.num_items;
    packed.num_tokens += item.num_tokens;
  }
  return packed;
}

}  // namespace chiliad::stepplan
