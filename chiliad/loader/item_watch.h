#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "chiliad/base/clock.h"

namespace chiliad::loader {

/// What a thread does with an item.
enum class ItemPhase : uint8_t { kIdle, kReading, kDecoding, kWords };
inline constexpr size_t kNumItemPhases = 4;
/// "reading", "decoding", "its words".
[[nodiscard]] const char* phase_name(ItemPhase phase);

/// Tells how long one thread has been at its item, and how long it spent on what. Thread-safe.
class ItemWatch {
 public:
  void begin(int64_t sample);
  void enter(ItemPhase phase);
  void end() { enter(ItemPhase::kIdle); }

  struct Snapshot {
    int64_t sample = -1;
    ItemPhase phase = ItemPhase::kIdle;
    Nanoseconds begun{0};  ///< of the item
    int64_t number = 0;    ///< of the item, among those of the thread
    std::array<Nanoseconds, kNumItemPhases> spent{};
  };
  [[nodiscard]] Snapshot snapshot() const;

 private:
  const SystemClock clock_;
  mutable std::mutex mutex_;  // guards the rest
  Snapshot now_;
  Nanoseconds entered_{0};
};

}  // namespace chiliad::loader
