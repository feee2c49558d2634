#include "chiliad/loader/step_maker.h"

#include <utility>

#include "chiliad/loader/make_slot.h"
#include "chiliad/stepplan/pack.h"

namespace chiliad::loader {

StepDraft StepMaker::draft(int64_t step, const stepplan::Journal& journal) const {
  StepDraft draft;
  draft.selected = plan_.select(step, journal);
  draft.packed = stepplan::pack(draft.selected, plan_.buckets(), options_.pack);
  for (const auto& slot : draft.packed.slots[static_cast<size_t>(options_.rank)]) {
    if (const int64_t bytes = slot_bytes(slot, plan_.buckets(), options_); bytes > 0)
      draft.bytes += Slab::block_bytes(bytes);
    draft.num_items += slot.items.size();
    for (const auto& item : slot.items) draft.planned_bytes += items_.payload_bytes(item);
  }
  return draft;
}

RankStep StepMaker::make(StepDraft&& draft, Slab& slab) const {
  const auto rank = static_cast<size_t>(options_.rank);
  RankStep step;
  step.step = draft.selected.step;
  step.epoch = draft.selected.epoch;
  step.num_items = draft.packed.num_items;
  step.num_tokens = draft.packed.num_tokens;
  step.digest = draft.selected.digest();
  step.seen = stepplan::count_groups(draft.selected, groups_);
  step.predicted_work = draft.packed.rank_work[rank];
  for (auto& slot : draft.packed.slots[rank]) {
    const int64_t bytes = slot_bytes(slot, plan_.buckets(), options_);
    auto memory = bytes == 0 ? nullptr : slab.take(bytes);
    step.slots.push_back(make_slot(std::move(slot), plan_.buckets(), options_, std::move(memory)));
  }
  return step;
}

void StepMaker::apply(const stepplan::Journal& journal, RankStep& step) const {
  const stepplan::Step selected = plan_.select(step.step, journal);
  step.digest = selected.digest();
  step.seen = stepplan::count_groups(selected, groups_);
  step.num_items = step.num_tokens = 0;
  for (const stepplan::Item& item : selected.items) {
    if (item.weight <= 0.0F) continue;
    ++step.num_items;
    step.num_tokens += item.num_tokens;
  }
  for (Batch& batch : step.slots) {
    for (size_t i = 0; i < batch.items.size(); ++i) {
      stepplan::Item& item = batch.items[i];
      if (journal.weight(item.sample, step.step) > 0.0F) continue;
      item.weight = 0.0F;
      const ItemPlace place = place_of(batch, i);
      clear_item(place);
      batch.content[i] = content_digest(place);
    }
  }
}

}  // namespace chiliad::loader
