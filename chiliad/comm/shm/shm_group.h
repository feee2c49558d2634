#pragma once

#include <memory>

#include "chiliad/comm/group.h"
#include "chiliad/ipc/shared_memory.h"

namespace chiliad::comm {

inline constexpr int kMaxSharedRanks = 256;

/// Bytes of the memory that `size` ranks share, with room for `bytes_per_rank` in flight from each.
[[nodiscard]] size_t shared_group_bytes(int size, int64_t bytes_per_rank);

/// A group of ranks on one machine, processes or threads, over shared memory: no copies through sockets, no
/// communication threads. `memory` is zeroed, of shared_group_bytes(size, ...), and the same for all ranks;
/// ranks that are threads of one process share its mapping.
[[nodiscard]] std::unique_ptr<Group> make_shared_memory_group(std::shared_ptr<const ipc::SharedMemory> memory,
                                                              Membership membership, Nanoseconds timeout);

}  // namespace chiliad::comm
