#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "chiliad/base/clock.h"
#include "chiliad/comm/group.h"

namespace chiliad::comm {

/// How ranks reach each other.
enum class Transport { kAuto, kGloo, kSharedMemory };

/// A group to be made.
struct GroupRequest {
  std::string name;                 ///< unique in the job
  std::vector<int> members;         ///< ranks of the job, ascending
  int64_t shared_bytes = 64 << 20;  ///< room of a rank in shared memory: what it has in flight at most
  int64_t kept_bytes = 0;           ///< more of it, for Group::share
  int gpu = -1;  ///< of this rank, whose tensors are there: the group is over NCCL; -1: tensors on the CPU
  int channels = 0;  ///< NCCL: thread blocks of the GPU that the group may take; 0: NCCL decides
};

/// Where the ranks of a job meet to make their groups. One thread a rank.
class Meeting {
 public:
  virtual ~Meeting() = default;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Makes a group. All its members, and only they, ask for it; each asks for its groups in the same order as
  /// its peers. A group of one is the solo group. Throws PeerLost after the deadline.
  [[nodiscard]] virtual std::unique_ptr<Group> make_group(const GroupRequest& request) = 0;
  /// This rank has all its groups. Returns when no peer needs it here any more.
  virtual void finish() = 0;
};

struct ConnectOptions {
  Transport transport = Transport::kAuto;  ///< auto: shared memory where all ranks of a group are on this
                                           ///< machine, else gloo
  int rank = 0;
  int size = 1;
  std::string host = "127.0.0.1";  ///< of the store that rank 0 serves
  std::string own_host;            ///< address that this rank's groups use; empty: host
  int port = 0;
  int listen_fd = -1;  ///< rank 0: an already listening socket on that port
  Nanoseconds timeout = std::chrono::seconds(60);
};

/// Ranks that are processes: they meet at a store on host:port that rank 0 serves. Throws PeerLost after the
/// deadline.
[[nodiscard]] std::unique_ptr<Meeting> meet(const ConnectOptions& options);

/// Ranks that are threads of this process, one meeting for each. Groups are over shared memory.
[[nodiscard]] std::vector<std::unique_ptr<Meeting>> meet_in_process(int size, Nanoseconds timeout);

}  // namespace chiliad::comm
