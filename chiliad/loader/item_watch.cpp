#include "chiliad/loader/item_watch.h"

namespace chiliad::loader {

const char* phase_name(ItemPhase phase) {
  switch (phase) {
    case ItemPhase::kReading:
      return "reading";
    case ItemPhase::kDecoding:
      return "decoding";
    case ItemPhase::kWords:
      return "its words";
    case ItemPhase::kIdle:
      break;
  }
  return "idle";
}

void ItemWatch::begin(int64_t sample) {
  const Nanoseconds now = clock_.now();
  std::lock_guard lock(mutex_);
  now_.sample = sample;
  now_.phase = ItemPhase::kReading;
  now_.begun = entered_ = now;
  ++now_.number;
}

void ItemWatch::enter(ItemPhase phase) {
  const Nanoseconds now = clock_.now();
  std::lock_guard lock(mutex_);
  if (now_.phase != ItemPhase::kIdle) now_.spent[static_cast<size_t>(now_.phase)] += now - entered_;
  now_.phase = phase;
  entered_ = now;
}

ItemWatch::Snapshot ItemWatch::snapshot() const {
  const Nanoseconds now = clock_.now();
  std::lock_guard lock(mutex_);
  Snapshot copy = now_;
  if (copy.phase != ItemPhase::kIdle) copy.spent[static_cast<size_t>(copy.phase)] += now - entered_;
  return copy;
}

}  // namespace chiliad::loader
