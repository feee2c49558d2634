#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

#include "chiliad/comm/group.h"

namespace c10d {
class Store;
}

namespace chiliad::comm {

struct NcclOptions {
  int gpu = 0;       ///< of this rank, as CUDA counts them; no two members have the same
  int channels = 0;  ///< thread blocks that NCCL may take of the GPU for this group; 0: NCCL decides
  Nanoseconds timeout;
};

/// GPUs that this process sees; 0 in a build without NCCL.
[[nodiscard]] int num_gpus();

/// A group over NCCL whose ranks meet at `store`; for dense tensors on the rank's GPU. Work::wait makes the
/// current stream wait, not the host: a lost peer is noticed after the deadline, running kernels end then,
/// and every later call and wait throws PeerLost. Throws PeerLost where members do not come within the
/// deadline, InvalidInput in a build without NCCL and where there is no such GPU.
[[nodiscard]] std::unique_ptr<Group> make_nccl_group(c10::intrusive_ptr<c10d::Store> store,
                                                     Membership membership, const NcclOptions& options);

}  // namespace chiliad::comm
