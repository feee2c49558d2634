#include "chiliad/ipc/progress_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <utility>

#include "chiliad/base/clock.h"
#include "chiliad/base/error.h"

namespace chiliad::ipc {
namespace {

constexpr size_t kPageBytes = 4096;

static_assert(std::atomic<int64_t>::is_always_lock_free && std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free && sizeof(ProgressFields) == 80);

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

void ProgressPage::set(const Progress& progress) {
  constexpr auto kOrder = std::memory_order_relaxed;
  std::array<uint64_t, 4> name{};
  std::memcpy(name.data(), progress.operation.data(), std::min(progress.operation.size(), sizeof(name)));
  fields_->step.store(progress.step, kOrder);
  fields_->phase.store(static_cast<uint32_t>(progress.phase), kOrder);
  fields_->slot.store(progress.slot, kOrder);
  fields_->instruction.store(progress.instruction, kOrder);
  fields_->program.store(progress.program, kOrder);
  fields_->layer.store(progress.layer, kOrder);
  for (size_t i = 0; i < name.size(); ++i) fields_->operation[i].store(name[i], kOrder);
  fields_->changed_ns.store(SystemClock().now().count(), kOrder);
}

std::string ProgressPage::operation() const {
  std::array<uint64_t, 4> words{};
  for (size_t i = 0; i < words.size(); ++i) {
    words[i] = fields_->operation[i].load(std::memory_order_relaxed);
  }
  const auto* text = reinterpret_cast<const char*>(words.data());
  return {text, ::strnlen(text, sizeof(words))};
}

}  // namespace chiliad::ipc
