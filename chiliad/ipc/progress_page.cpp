#include "chiliad/ipc/progress_page.h"

#include <fmt/core.h>

#include <array>
#include <new>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"

namespace chiliad::ipc {
namespace {

constexpr size_t kPageBytes = 4096;

static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
static_assert(sizeof(ProgressFields) == 32);

}  // namespace

const char* phase_name(Phase phase) {
  constexpr std::array<const char*, kNumPhases> kNames{
      "start",     "data_wait",  "host_to_device", "forward", "backward", "communication",
      "optimizer", "checkpoint", "evaluation",     "other",   "finished"};
  const auto index = static_cast<size_t>(phase);
  return index < kNames.size() ? kNames[index] : "unknown";
}

ProgressPage::ProgressPage(SharedMemory memory) : memory_(std::move(memory)) {
  fields_ = std::launder(reinterpret_cast<ProgressFields*>(memory_.bytes().data()));
}

ProgressPage ProgressPage::create() {
  SharedMemory memory = SharedMemory::create("chiliad-progress", kPageBytes);
  new (memory.bytes().data()) ProgressFields{};
  return ProgressPage(std::move(memory));
}

ProgressPage ProgressPage::map(UniqueFd fd) {
  SharedMemory memory = SharedMemory::map(std::move(fd));
  if (memory.bytes().size() < sizeof(ProgressFields)) {
    throw CorruptData("progress page", fmt::format("has {} bytes, expected at least {}",
                                                   memory.bytes().size(), sizeof(ProgressFields)));
  }
  return ProgressPage(std::move(memory));
}

void ProgressPage::set(int64_t step, Phase phase, int32_t slot, int32_t instruction) {
  fields_->step.store(step, std::memory_order_relaxed);
  fields_->phase.store(static_cast<uint32_t>(phase), std::memory_order_relaxed);
  fields_->slot.store(slot, std::memory_order_relaxed);
  fields_->instruction.store(instruction, std::memory_order_relaxed);
  fields_->changed_ns.store(SystemClock().now().count(), std::memory_order_relaxed);
}

}  // namespace chiliad::ipc
