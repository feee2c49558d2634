#pragma once

#include <cstdint>
#include <string>

#include "chiliad/base/log.h"
#include "chiliad/supervise/launch/job_machine.h"

namespace chiliad::supervise {

// Bodies of the frames between worker and parent (ipc::FrameType). Reading throws CorruptData for anything
// else.

struct SnapshotFrame {
  int64_t step = 0;
  int slot = 0;
};
[[nodiscard]] SnapshotFrame read_snapshot_frame(const std::string& body);

struct FinishedFrame {
  int64_t step = 0;
  std::string reason;  ///< done or stopped
};
[[nodiscard]] FinishedFrame read_finished_frame(const std::string& body);

/// {"kind", "place", "message", "step", "ranks"}; kinds: invalid_input, unavailable, corrupt_data, peer_lost,
/// internal. "ranks", those that the error is about, may be missing.
[[nodiscard]] WorkerError read_error_frame(const std::string& body);

struct LogFrame {
  LogLevel level = LogLevel::kInfo;
  std::string line;
};
/// {"level", "line"}; levels: debug, info, warn, error.
[[nodiscard]] LogFrame read_log_frame(const std::string& body);

[[nodiscard]] std::string slot_free_body(int slot, int64_t step, bool committed);

}  // namespace chiliad::supervise
