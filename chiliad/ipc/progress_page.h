#pragma once

#include <atomic>
#include <cstdint>

#include "chiliad/ipc/shared_memory.h"

namespace chiliad::ipc {

/// What a worker is doing. Also the rows of the time account.
enum class Phase : uint32_t {
  kStart = 0,
  kDataWait = 1,
  kHostToDevice = 2,
  kForward = 3,
  kBackward = 4,
  kCommunication = 5,
  kOptimizer = 6,
  kCheckpoint = 7,
  kEvaluation = 8,
  kOther = 9,
  kFinished = 10,
};
inline constexpr int kNumPhases = 11;

[[nodiscard]] const char* phase_name(Phase phase);

/// Lies in memory that the parent made before the worker started, so it outlives the worker.
struct ProgressFields {
  std::atomic<int64_t> step;
  std::atomic<uint32_t> phase;
  std::atomic<int32_t> slot;
  std::atomic<int32_t> instruction;
  std::atomic<int64_t> changed_ns;  ///< steady clock at the last change
};

/// One worker's page. Writing is a few relaxed stores; reading from another process gives a recent value.
class ProgressPage {
 public:
  [[nodiscard]] static ProgressPage create();
  [[nodiscard]] static ProgressPage map(UniqueFd fd);
  void set(int64_t step, Phase phase, int32_t slot, int32_t instruction);
  [[nodiscard]] const ProgressFields& fields() const { return *fields_; }
  [[nodiscard]] int fd() const { return memory_.fd(); }

 private:
  explicit ProgressPage(SharedMemory memory);
  SharedMemory memory_;
  ProgressFields* fields_;
};

}  // namespace chiliad::ipc
