#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

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
  std::atomic<uint64_t> program;    ///< of the instruction; 0: none
  std::atomic<int32_t> layer;
  std::array<std::atomic<uint64_t>, 4> operation;  ///< name, filled up with zero bytes
};

/// Where a worker is, for its page. -1, 0 or empty: there is none.
struct Progress {
  int64_t step = 0;
  Phase phase = Phase::kStart;
  int32_t slot = -1;
  int32_t instruction = -1;  ///< its index in the program
  int32_t layer = -1;
  uint64_t program = 0;             ///< part of the digest of what this step runs; alike on all ranks
  std::string_view operation = {};  ///< name of the instruction; at most 32 bytes are kept
};

/// One worker's page. Writing is a few relaxed stores; reading from another process gives a recent value.
class ProgressPage {
 public:
  [[nodiscard]] static ProgressPage create();
  [[nodiscard]] static ProgressPage map(UniqueFd fd);
  void set(const Progress& progress);
  [[nodiscard]] std::string operation() const;
  [[nodiscard]] const ProgressFields& fields() const { return *fields_; }
  [[nodiscard]] int fd() const { return memory_.fd(); }

 private:
  explicit ProgressPage(SharedMemory memory);
  SharedMemory memory_;
  ProgressFields* fields_;
};

}  // namespace chiliad::ipc
