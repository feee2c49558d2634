#pragma once

#include <memory>

#include "chiliad/comm/meeting.h"
#include "chiliad/ipc/shared_memory.h"

namespace chiliad::comm {

inline constexpr int kMaxSharedRanks = 256;

/// Bytes of the memory that `size` ranks share for a group as requested.
[[nodiscard]] size_t shared_group_bytes(int size, const GroupRequest& request);

/// A group of ranks on one machine, processes or threads, over shared memory: no copies through sockets, no
/// communication threads. `memory` is zeroed, of shared_group_bytes(size, request), and the same for all
/// ranks; ranks that are threads of one process share its mapping. kept_bytes: the request's.
[[nodiscard]] std::unique_ptr<Group> make_shared_memory_group(std::shared_ptr<const ipc::SharedMemory> memory,
                                                              Membership membership, int64_t kept_bytes,
                                                              Nanoseconds timeout);

}  // namespace chiliad::comm
