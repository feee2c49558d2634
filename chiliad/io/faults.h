#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace chiliad::io {

/// The file calls that a test can make fail.
enum class FileOp { kOpen, kRead, kWrite, kSync, kRename, kRemove, kMakeFolder, kSyncFolder, kClose };

[[nodiscard]] const char* file_op_name(FileOp op);

/// What a hook does to one call: nothing (0), fail it with an errno, or (kShortWrite) write half and then
/// fail with ENOSPC.
struct FaultAction {
  int error = 0;
  bool short_write = false;
};

/// Called before each file operation, in builds with CHILIAD_FAULTS only.
using FaultHook = std::function<FaultAction(FileOp, const std::string& path)>;

/// Installs `hook` for its scope. Not reentrant; tests only. The hook must be thread-safe.
class ScopedFaultHook {
 public:
  explicit ScopedFaultHook(FaultHook hook);
  ~ScopedFaultHook();
  ScopedFaultHook(const ScopedFaultHook&) = delete;
  ScopedFaultHook& operator=(const ScopedFaultHook&) = delete;
};

/// Reads CHILIAD_FILE_FAULT, for tests of whole processes: "OP:PATH_PART:N:WHAT" acts on the N-th (from 1)
/// call of OP whose path contains PATH_PART; WHAT is "kill" (SIGKILL to this process) or an errno name
/// (ENOSPC, EIO, EDQUOT), for that call and all later ones (a full disk stays full) or, with "N-M" in place
/// of N, up to the M-th; "OP" may be "any". Called lazily by the first file operation.
[[nodiscard]] FaultAction before_file_op(FileOp op, const std::string& path);

}  // namespace chiliad::io
